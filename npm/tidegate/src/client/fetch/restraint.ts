import type { Config } from "../../limit/config.ts";
import type { State } from "../../limit/decision.ts";
import { evaluate } from "../../limit/evaluate.ts";
import type { Pace } from "../queue.ts";
import type { Told, ToldLimit } from "../told/read.ts";

/** One of the server's limits, of which little is left. */
interface Low {
  /** What is left, evenly over the time for which it must do; none where nothing is left. */
  readonly config: Config | undefined;
  /** Epoch ms from which there is more. */
  readonly until: number;
  /** What was sent since, as a debt. */
  state: State | null;
}

/** Limits of one server that are minded: more than anybody tells. */
const MOST_LIMITS = 100;

/** What a server told of its limits: requests wait by it before they would be denied. */
export class Restraint implements Pace {
  readonly #slowBelow: number;
  readonly #low: Map<string, Low> = new Map();
  /** The most that was seen of limits whose size is not told. */
  readonly #most: Map<string, number> = new Map();
  #until = 0;
  #flying = 0;
  #sent = 0;
  #heard = 0;

  constructor(slowBelow: number) {
    this.#slowBelow = slowBelow;
  }

  at(now: number): number {
    let at = Math.max(now, this.#until);
    for (const [name, low] of this.#low) {
      if (now >= low.until) this.#low.delete(name);
      else at = Math.max(at, this.#next(low, now));
    }
    return at;
  }

  ran(_count: number, now: number): void {
    for (const low of this.#low.values()) {
      if (low.config !== undefined) low.state = evaluate(low.state, low.config, { now, reserve: true }).state;
    }
  }

  /** A request is on its way: its number. */
  send(): number {
    this.#flying++;
    return ++this.#sent;
  }

  /** It is answered, or has failed. */
  landed(): void {
    this.#flying--;
  }

  /** Nothing is sent before this, epoch ms. */
  hold(until: number): void {
    this.#until = Math.max(this.#until, until);
  }

  /** What the answer to the request of this number tells. An older one's is of an older time. */
  hear(told: Told, sent: number, now: number): void {
    if (sent < this.#heard) return;
    this.#heard = sent;
    for (const limit of told.limits) this.#learn(limit, now);
  }

  #learn({ name, unit, limit, remaining, resetAfter }: ToldLimit, now: number): void {
    const requests = unit === "requests";
    // What is on its way is not in the server's count yet.
    const left = requests ? Math.max(0, remaining - this.#flying) : remaining;
    // A server that makes up names must not fill this memory.
    if (this.#most.size >= MOST_LIMITS && !this.#most.has(name)) return;
    const most = limit ?? Math.max(remaining, this.#most.get(name) ?? 0);
    this.#most.set(name, most);
    const before = this.#low.get(name);
    this.#low.delete(name);
    // Of other units nobody knows how many a request takes: they hold it back where there are none.
    const low = requests ? left < most * this.#slowBelow || left === 0 : left === 0;
    if (!low || resetAfter === undefined || resetAfter <= 0) return;
    const config: Config | undefined =
      left === 0 ? undefined : { kind: "token bucket", rate: left, period: Math.ceil(resetAfter), capacity: 0 };
    this.#low.set(name, { config, until: now + resetAfter, state: before?.state ?? null });
  }

  #next({ config, until, state }: Low, now: number): number {
    if (config === undefined) return until;
    // A first one goes at once: what is left is there.
    if (state === null) return now;
    const { retryAt } = evaluate(state, config, { now, count: 0, reserve: true }).decision;
    return Math.min(retryAt ?? now, until);
  }
}
