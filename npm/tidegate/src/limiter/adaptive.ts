/**
 * A rate that adapts to the health of an upstream, as in TCP: additive increase while responses arrive in time,
 * multiplicative decrease when they do not.
 *
 * @module
 */
import { EXPECTS, MAX_COUNT } from "../engine/generated/bounds.ts";
import {
  ANY,
  type Check,
  check,
  checkTable,
  durationFrom,
  FLAG,
  FUNCTION,
  functionThat,
  msOf,
  numberFrom,
  checkObject,
} from "../limit/checks.ts";
import { TOKENS } from "../limit/tokens.ts";
import type { TokenBucketConfig } from "../limit/config.ts";
import type { Duration } from "../limit/duration.ts";

/** Settings of {@link adaptiveRate}. */
export interface AdaptiveOptions {
  /** Least tokens per period: above 0, up to 2^40, so that some requests keep probing. */
  floor: number;
  /** Most tokens per period: from `floor` up to 2^40. */
  ceiling: number;
  /** The period of `floor`, `ceiling` and `rate`: integer ms from 1 to 2^40, or a string such as `"1m"`. */
  period: Duration;
  /** Initial tokens per period; default `floor`. */
  start?: number | undefined;
  /**
   * The capacity, as the time in which the rate adds it: ms from 0 to 2^40, or a string; default `period`. At least
   * one token.
   */
  burst?: Duration | undefined;
  /** A request that takes longer counts as bad: ms above 0, or a string; default no bound. */
  latency?: Duration | undefined;
  /** The fraction of bad requests up to which the rate does not decrease: from 0 to below 1; default 0.1. */
  tolerance?: number | undefined;
  /** Tokens per period that a good step adds; default a hundredth of the range from `floor` to `ceiling`. */
  increase?: number | undefined;
  /** The factor of a bad step: above 0, below 1; default 0.7. */
  decrease?: number | undefined;
  /** The length of a step: ms from 1 to 2^40, or a string; default 1000. Several requests should end in each. */
  every?: Duration | undefined;
  /** The clock, ms; default `Date.now`. Pass one in tests. */
  now?: (() => number) | undefined;
}

/** Ends a request of {@link AdaptiveRate.begin}; further calls are ignored. */
export type Done = (ended?: {
  /** Whether it failed from overload: a 503 or a timeout, not a 404. Default false. */
  failed?: boolean | undefined;
}) => void;

type Settings = { readonly [K in Exclude<keyof AdaptiveOptions, "start" | "now">]: number } & {
  readonly now: () => number;
};

interface Sent {
  readonly at: number;
  /** -1 after it was counted. */
  era: number;
}

const RATE = numberFrom(EXPECTS.rate, Number.MIN_VALUE, MAX_COUNT);
const PERIOD = durationFrom(1, MAX_COUNT, true);
const TIME = numberFrom("a function that returns a finite number of ms", -Number.MAX_VALUE, Number.MAX_VALUE);
const OPTIONS: Readonly<Record<keyof AdaptiveOptions, Check>> = {
  // The first four have bounds that depend on each other, or are required.
  floor: ANY,
  ceiling: ANY,
  period: ANY,
  start: ANY,
  burst: durationFrom(0, MAX_COUNT),
  latency: { ...durationFrom(Number.MIN_VALUE), expects: 'a number of ms above 0, or a string such as "300ms"' },
  tolerance: numberFrom("a number from 0 up to, but not, 1", 0, 1 - Number.EPSILON / 2),
  increase: numberFrom(`a number of tokens from 0 to ${MAX_COUNT}`, 0, MAX_COUNT),
  decrease: numberFrom("a number above 0 and below 1", Number.MIN_VALUE, 1 - Number.EPSILON / 2),
  every: durationFrom(1, MAX_COUNT),
  now: functionThat("a function that returns ms"),
};

export type { AdaptiveRate };

/** An adaptive rate. Made by {@link adaptiveRate}; each process has its own. */
class AdaptiveRate {
  readonly #set: Settings;
  #rate: number;
  #config: TokenBucketConfig | undefined;
  #stepAt: number;
  /** Requests in flight, in order. Without a `latency` none is late, and one that never ends must not be kept. */
  readonly #sent = new Set<Sent>();
  /** Only requests of this era count. A decrease begins one: older requests measure the old rate, and would count twice. */
  #era = 0;
  /** In this step: tokens of requests that began, requests that ended or are late, and bad ones among these. */
  #tokens = 0;
  #ended = 0;
  #bad = 0;

  constructor(options: AdaptiveOptions) {
    checkTable("adaptiveRate", options, OPTIONS, "an object with floor, ceiling and period");
    const floor = check("floor", options.floor, RATE);
    const ceilingOf = `a finite number of tokens from floor (${floor}) to ${MAX_COUNT}`;
    const ceiling = check("ceiling", options.ceiling, numberFrom(ceilingOf, floor, MAX_COUNT));
    const period = msOf(check("period", options.period, PERIOD));
    const startOf = `a number of tokens from floor (${floor}) to ceiling (${ceiling})`;
    const {
      start = floor,
      tolerance = 0.1,
      increase = (ceiling - floor) / 100,
      decrease = 0.7,
      now: clock = () => Date.now(),
    } = options;
    const now = () => check("now", clock(), TIME);
    check("start", start, numberFrom(startOf, floor, ceiling));
    const [burst, every] = [msOf(options.burst ?? period), msOf(options.every ?? 1000)];
    const latency = msOf(options.latency ?? Infinity);
    this.#set = { floor, ceiling, period, burst, latency, tolerance, increase, decrease, every, now };
    this.#rate = start;
    this.#stepAt = now();
  }

  /** Tokens per period, as of now. */
  get rate(): number {
    this.#step(this.#set.now());
    return this.#rate;
  }

  /**
   * The current limit: pass it to each call as its `config`. The limit's state is kept, and refills at the new rate. The
   * same object until the rate changes.
   */
  config(): TokenBucketConfig {
    const { rate } = this;
    if (this.#config?.rate !== rate) {
      const { period, burst } = this.#set;
      // Less could never grant one token.
      const capacity = Math.min(Math.max((rate * burst) / period, 1), MAX_COUNT);
      this.#config = { kind: "token bucket", rate, period, capacity };
    }
    return this.#config;
  }

  /**
   * Records that a request of `count` tokens is sent; call the result when it ends. A request without a response after
   * `latency` counts as bad from then on, before it ends.
   */
  begin(count = 1): Done {
    check("count", count, TOKENS);
    const now = this.#set.now();
    this.#step(now);
    const request: Sent = { at: now, era: this.#era };
    if (this.#set.latency < Infinity) this.#sent.add(request);
    this.#tokens += count;
    return (ended = {}) => {
      checkObject("ended", ended, "an object with failed");
      checkTable("an ended request", ended, { failed: FLAG });
      const { failed = false } = ended;
      const now = this.#set.now();
      this.#step(now);
      if (request.era !== this.#era) return;
      this.#end(request);
      if (failed || now - request.at > this.#set.latency) this.#bad++;
    };
  }

  /** Runs a request of `count` tokens, and returns its value; one that throws has failed. */
  async run<T>(request: () => T | Promise<T>, count?: number): Promise<T> {
    check("request", request, FUNCTION);
    const done = this.begin(count);
    let failed = true;
    try {
      const value = await request();
      failed = false;
      return value;
    } finally {
      done({ failed });
    }
  }

  /** Ends the step if it is over. There is no timer: each call does it. */
  #step(now: number): void {
    const { floor, ceiling, period, tolerance, increase, decrease, every } = this.#set;
    const lasted = now - this.#stepAt;
    if (lasted >= 0 && lasted < every) return;
    this.#countLate(now);
    // After a clock was set back, a new step begins. The share of failures is no product: 0.29 * 100 is less than 29.
    if (lasted < 0) this.#newEra();
    else if (this.#bad / this.#ended > tolerance) {
      this.#rate = Math.max(floor, this.#rate * decrease);
      this.#newEra();
    } else if (this.#ended > 0 && this.#tokens >= (this.#rate * lasted) / period / 2) {
      // An unused rate was not tested, so it must not rise.
      this.#rate = Math.min(ceiling, this.#rate + increase);
    }
    this.#stepAt = now;
    this.#tokens = 0;
    this.#ended = 0;
    this.#bad = 0;
  }

  #newEra(): void {
    this.#era++;
    this.#sent.clear();
  }

  #end(request: Sent): void {
    request.era = -1;
    this.#sent.delete(request);
    this.#ended++;
  }

  /** Counts late requests; each counts once, here or when it ends. */
  #countLate(now: number): void {
    for (const request of this.#sent) {
      if (now - request.at <= this.#set.latency) break;
      this.#end(request);
      this.#bad++;
    }
  }
}

/**
 * A rate that adapts to the health of an upstream, between a floor and a ceiling. Pass its `config()` to the limiter, and
 * run the requests through it.
 *
 * ```ts
 * const upstream = adaptiveRate({ floor: 5, ceiling: 500, period: SECOND, latency: 300 });
 * const { ok } = limits.limit("upstream", { config: upstream.config() });
 * if (ok) await upstream.run(() => callUpstream());
 * ```
 *
 * The rate changes after each step of `every` ms. If more than `tolerance` of the requests failed or took longer than
 * `latency`, it is multiplied by `decrease`. Otherwise `increase` is added, if at least half of the rate was used.
 * Instances with the same settings converge to about equal shares without communication. Throws an `InputError` if an
 * option is wrong.
 */
export function adaptiveRate(options: AdaptiveOptions): AdaptiveRate {
  return new AdaptiveRate(options);
}
