/** A process of the fleet: a limiter of the package on its own client. */
import { type AllDecision, type Decision, defineLimits, type Limiter } from "tidegate";
import { redis } from "tidegate/redis";
import type { AsyncStore } from "tidegate/store";
import { Life } from "../engine/clock.ts";
import type { World } from "../engine/world.ts";
import type { Request } from "./demand.ts";
import type { End, Redis } from "./network.ts";
import { configOf, type Scenario, shardsOf } from "./scenario.ts";

/** The limits of a node. `other` is used in pairs only: it grants less than `limit`. */
export type Name = "limit" | "other";

export interface NodeEvents {
  answered(request: Request, decision: Decision | AllDecision, called: number): void;
  /** Requests that were waiting in a process that was killed. */
  lost(requests: readonly Request[]): void;
}

export class FleetNode implements End {
  cuts = 0;
  life: Life | undefined;
  /** Tokens that it gave back while it was released. */
  released = 0;
  offset = 0;
  drift = 0;
  readonly #scenario: Scenario;
  readonly #world: World;
  readonly #redis: Redis;
  readonly #events: NodeEvents;
  readonly #waiting: Set<Request> = new Set();
  #gathered: Request[] = [];
  #limits: Limiter<Name, AsyncStore> | undefined;
  #releasing = false;

  constructor(scenario: Scenario, world: World, server: Redis, events: NodeEvents) {
    this.#scenario = scenario;
    this.#world = world;
    this.#redis = server;
    this.#events = events;
  }

  start(): void {
    const { mode, limit } = this.#scenario;
    const life = new Life();
    life.offset = this.offset;
    life.drift = this.drift;
    this.life = life;
    this.#world.within(life, () => {
      const lease = mode.name === "lease" ? mode.lease : false;
      const store = redis(this.#redis.client(life, this), { lease });
      const config = configOf(limit, shardsOf(mode));
      const other = { ...config, rate: limit.rate / 2 };
      this.#limits = defineLimits({ limit: config, other }, { store: this.#watched(store), log: false });
    });
  }

  kill(): void {
    if (this.life === undefined) return;
    this.life.alive = false;
    this.life = undefined;
    this.#limits = undefined;
    this.#events.lost([...this.#waiting]);
    this.#waiting.clear();
    this.#gathered = [];
  }

  setClock(offset: number): void {
    this.offset = offset;
    if (this.life !== undefined) this.life.offset = offset;
  }

  /** A request arrives. To be called in this process. */
  arrive(request: Request): void {
    const { mode } = this.#scenario;
    this.#waiting.add(request);
    if (mode.name !== "batch") {
      this.#call(request);
      return;
    }
    this.#gathered.push(request);
    if (this.#gathered.length > 1) return;
    this.#world.after(mode.turn, this.life, () => {
      const turn = this.#gathered;
      this.#gathered = [];
      for (const one of turn) this.#call(one);
    });
  }

  #call(request: Request): void {
    const limits = this.#limits as Limiter<Name, AsyncStore>;
    const { count } = request;
    const key = `k${request.key}`;
    const called = this.#world.now;
    const answer: Promise<Decision | AllDecision> =
      this.#scenario.mode.name === "pairs"
        ? limits.limitAll([
            { name: "limit", key, count },
            { name: "other", key, count },
          ])
        : limits.limit("limit", { key, count });
    void answer.then((decision) => {
      this.#waiting.delete(request);
      this.#events.answered(request, decision, called);
    });
  }

  /** Gives its leases back. */
  release(): void {
    this.#releasing = true;
    void this.#limits?.release();
  }

  /** The store, counting the tokens that a release gives back. */
  #watched(store: AsyncStore): AsyncStore {
    return {
      name: store.name,
      sync: false,
      lease: store.lease,
      decide: (call, now, deadline) => {
        if (this.#releasing && call.op === "give") this.released += call.count;
        return store.decide(call, now, deadline);
      },
      decideAll: (calls, now, deadline) => store.decideAll(calls, now, deadline),
      reset: (limit, key, deadline) => store.reset(limit, key, deadline),
      getValue: (limit, key, now, deadline) => store.getValue(limit, key, now, deadline),
    };
  }
}
