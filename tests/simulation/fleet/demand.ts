/** Requests: when the next one arrives, at which node, for which key. */
import { below, exponential, type Random, stream, zipf } from "../engine/random.ts";
import { SECOND } from "../engine/world.ts";
import type { Scenario } from "./scenario.ts";

export interface Request {
  /** Virtual µs. */
  readonly at: number;
  readonly node: number;
  readonly key: number;
  /** Tokens. */
  readonly count: number;
}

/** Draws requests, one after another. */
export class Requests {
  readonly #random: Random;
  readonly #key: (random: Random) => number;
  readonly #scenario: Scenario;
  #at = 0;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#random = stream(scenario.seed, "demand");
    this.#key = zipf(scenario.keys, scenario.demand.zipf);
  }

  next(): Request {
    const { demand } = this.#scenario;
    this.#at += exponential(this.#random, demand.perSecond / SECOND);
    const key = this.#key(this.#random);
    const node = this.#node();
    const count = demand.most > 1 ? 1 + below(this.#random, demand.most) : 1;
    return { at: Math.floor(this.#at), node, key, count };
  }

  #node(): number {
    const { demand, nodes } = this.#scenario;
    if (demand.large === 0 || nodes === 1) return below(this.#random, nodes);
    return this.#random() < demand.large ? 0 : 1 + below(this.#random, nodes - 1);
  }
}
