import type { Config } from "../limit/config.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import {
  type CallOptions,
  defineLimits,
  type Limiter,
  type LimitOptions,
  type LimitRequest,
  type Value,
} from "../limiter/limiter.ts";
import type { Store } from "../stores/contract.ts";
import { type FakeClock, fakeClock } from "./clock.ts";

/** Limits on the store under test, asked as a user asks them. A failure of the store is an error here, not a denial. */
export class Subject<N extends string> {
  readonly #limits: Limiter<N, Store>;

  constructor(store: Store, clock: FakeClock, configs: Readonly<Record<N, Config>>) {
    this.#limits = defineLimits<N, Store>(configs, { store, now: clock.now, timeout: 60_000, log: false });
  }

  async limit(name: N, options?: LimitOptions): Promise<Decision> {
    return sound(await this.#limits.limit(name, options));
  }
  async check(name: N, options?: LimitOptions): Promise<Decision> {
    return sound(await this.#limits.check(name, options));
  }
  async give(name: N, options?: CallOptions): Promise<Decision> {
    return sound(await this.#limits.give(name, options));
  }
  async charge(name: N, options?: CallOptions): Promise<Decision> {
    return sound(await this.#limits.charge(name, options));
  }
  async limitAll(requests: readonly LimitRequest<N>[]): Promise<AllDecision> {
    return sound(await this.#limits.limitAll(requests));
  }
  async checkAll(requests: readonly LimitRequest<N>[]): Promise<AllDecision> {
    return sound(await this.#limits.checkAll(requests));
  }
  async reset(name: N, options?: Pick<CallOptions, "key">): Promise<void> {
    await this.#limits.reset(name, options);
  }
  async value(name: N, options?: Pick<CallOptions, "key">): Promise<Value> {
    return this.#limits.getValue(name, options);
  }
}

function sound<D extends { degraded?: true; cause?: unknown }>(decision: D): D {
  if (decision.degraded === true) throw decision.cause;
  return decision;
}

/** What one test of the suite is given. */
export interface Stage {
  readonly clock: FakeClock;
  readonly store: Store;
  /** Limits on the store. */
  limits<const N extends string>(configs: Readonly<Record<N, Config>>): Subject<N>;
}

/** A stage with a clock of its own. */
export function stage(store: Store): Stage {
  const clock = fakeClock();
  return { clock, store, limits: (configs) => new Subject(store, clock, configs) };
}

/** One test: what must hold, and how it is found out. */
export interface Case {
  readonly name: string;
  /** What not every store can do, and this test needs. */
  readonly asks?: readonly ("limitAll" | "shards")[];
  run(stage: Stage): Promise<void>;
}
