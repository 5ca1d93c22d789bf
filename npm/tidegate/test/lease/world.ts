/** Nodes, a store and the network between them, on one clock that a test moves. */
import type { LimitOptions } from "../../src/limiter/options.ts";
import { type Config, defineLimits, type Decision, HOUR, type LeaseOptions, memory } from "../../src/index.ts";
import type { AsyncStore, Call } from "../../src/stores/contract.ts";
import { fakeClock } from "../../src/testing/index.ts";

type Limits = ReturnType<typeof node>;

function node(store: AsyncStore, config: Config, now: () => number) {
  // Deadlines use the real clock, which this world's time does not follow.
  return defineLimits({ hot: config }, { store, now, timeout: 2 ** 31 - 1 });
}

const START = 1_000_000;

/** Refills too slowly to matter in a test. */
export const still = (capacity: number): Config => ({ kind: "token bucket", rate: 1, period: HOUR, capacity });

export class World {
  readonly clock = fakeClock(START);
  readonly truth = memory();
  /** Steps on the store. */
  calls = 0;
  /** Tokens that the store took and got back. */
  lent = 0;
  /** What was granted so far, and when: [ms, tokens]. */
  readonly grants: [number, number][] = [];
  readonly #config: Config;
  readonly #latency: () => number;
  #due: { at: number; run: () => void }[] = [];
  down = false;

  constructor(config: Config, latency: () => number = () => 0) {
    this.#config = config;
    this.#latency = latency;
  }

  node(lease: boolean | LeaseOptions = true): Limits {
    const later = <T>(step: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        const there = this.#latency();
        const back = this.#latency();
        if (this.down) return this.#at(there, () => reject(new Error("the store is down")));
        this.#at(there, () => {
          this.calls++;
          const answer = step();
          this.#at(back, () => resolve(answer));
        });
      });
    const store: AsyncStore = {
      name: "far",
      sync: false,
      lease,
      decide: (call) => later(() => this.#decide(call)),
      decideAll: (calls) => later(() => this.truth.decideAll(calls, this.clock.now())),
      reset: (limit, key) => later(() => this.truth.reset(limit, key)),
      getValue: (limit, key) => later(() => this.truth.getValue(limit, key, this.clock.now())),
    };
    return node(store, this.#config, this.clock.now);
  }

  /** Uses the store's clock, whatever the caller's shows. */
  #decide(call: Call): Decision {
    const decision = this.truth.decide(call, this.clock.now());
    if (call.op === "take" && decision.ok) this.lent += call.count;
    if (call.op === "give") this.lent -= call.count;
    return decision;
  }

  #at(ms: number, run: () => void): void {
    if (ms <= 0) run();
    else this.#due.push({ at: this.clock.now() + ms, run });
  }

  /** Records a grant. */
  async limit(limits: Limits, options: LimitOptions = {}): Promise<Decision> {
    const decision = await limits.limit("hot", options);
    if (decision.ok) this.grants.push([this.clock.now(), options.count ?? 1]);
    return decision;
  }

  get granted(): number {
    return this.grants.reduce((sum, [, count]) => sum + count, 0);
  }

  /** Tokens that no store step has taken back and no request was granted. */
  get unspent(): number {
    return this.lent - this.granted;
  }

  /** Lets everything run that needs no clock. */
  async settle(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const now = this.clock.now();
      const due = this.#due.filter(({ at }) => at <= now);
      if (due.length === 0) return;
      this.#due = this.#due.filter(({ at }) => at > now);
      for (const { run } of due) run();
    }
  }

  async pass(ms: number, each: () => void = () => {}): Promise<void> {
    for (let i = 0; i < ms; i++) {
      each();
      await this.settle();
      this.clock.advance(1);
    }
    await this.settle();
  }

  /** The most that was granted beyond `capacity + rate * T / period` in any span of T ms, and in those from the start. */
  excess({ rate, period, capacity = rate }: Config): { anySpan: number; fromStart: number } {
    let [granted, lowest, anySpan, fromStart] = [0, 0, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const [at, count] of this.grants) {
      // A span that begins right before this grant.
      lowest = Math.min(lowest, granted - ((at - START) * rate) / Number(period));
      granted += count;
      const now = granted - ((at - START) * rate) / Number(period);
      anySpan = Math.max(anySpan, now - lowest - capacity);
      fromStart = Math.max(fromStart, now - capacity);
    }
    return { anySpan, fromStart };
  }
}
