/**
 * A rate that follows the health of what it protects: up in small steps while answers come in time, down at once when they
 * do not (additive increase, multiplicative decrease, as TCP does).
 *
 * @module
 */
import { checkFields, fieldTable, type TokenBucketConfig } from "../limit/config.ts";
import { EXPECTS } from "../engine/generated/bounds.ts";
import { InputError } from "../limit/errors.ts";

/** Settings of {@link adaptiveRate}. */
export interface AdaptiveOptions {
  /** Least tokens per period, however bad it looks: above 0, up to 2^40. So something goes on asking how it is. */
  floor: number;
  /** Most tokens per period, however well it goes: from `floor` up to 2^40. */
  ceiling: number;
  /** ms, whole, 1 to 2^40: what `floor`, `ceiling` and `rate` are per. */
  period: number;
  /** Tokens per period to begin with; default `floor`. */
  start?: number | undefined;
  /** ms of the rate that may come at once: 0 to 2^40; default `period`. One token always may. */
  burst?: number | undefined;
  /** A request that takes more ms than this is a bad one; default none is, for its time. */
  latency?: number | undefined;
  /** The share of bad requests that is no reason to slow down: 0 up to, but not, 1; default 0.1. */
  tolerance?: number | undefined;
  /** Tokens per period that a good step adds; default a hundredth of the way from `floor` to `ceiling`. */
  increase?: number | undefined;
  /** What a bad step multiplies the rate by: above 0, below 1; default 0.7. */
  decrease?: number | undefined;
  /** ms that a step takes, 1 to 2^40; default 1000. Several requests should end in one. */
  every?: number | undefined;
  /** The clock, ms; default `Date.now`. Give one in tests. */
  now?: (() => number) | undefined;
}

/** Ends a request that {@link AdaptiveRate.begin} began; what is said after the first time is passed over. */
export type Done = (ended?: {
  /** Whether it failed in a way that says "too much": a 503, a timeout; not a 404. Default no. */
  failed?: boolean | undefined;
}) => void;

/** The options, with their defaults. */
type Settings = { readonly [K in Exclude<keyof AdaptiveOptions, "start">]-?: NonNullable<AdaptiveOptions[K]> };

const OPTIONS = fieldTable(
  ...["floor", "ceiling", "period", "start", "burst", "latency", "tolerance", "increase", "decrease", "every", "now"],
);
const ENDED = fieldTable("failed");
const MOST = 2 ** 40;

/** Passes a number on, or says what it must be. */
function within(field: string, value: unknown, what: string, legal: (value: number) => boolean): number {
  if (typeof value === "number" && legal(value)) return value;
  throw new InputError(field, what, value);
}

/** A rate that follows how requests go. Made by {@link adaptiveRate}; each instance of a program has its own. */
export class AdaptiveRate {
  readonly #set: Settings;
  #rate: number;
  #config: TokenBucketConfig | undefined;
  #stepAt: number;
  /**
   * When each request that is on its way was sent, in that order. Those that were sent before the rate went down tell of a
   * rate that is gone: they are forgotten then, so that one overload is not punished twice.
   */
  readonly #sent = new Set<{ readonly at: number }>();
  /** Of this step: tokens of requests that began, requests that ended or are late, and those of them that are bad. */
  #tokens = 0;
  #ended = 0;
  #bad = 0;

  constructor(options: AdaptiveOptions) {
    if (typeof options !== "object" || options === null) {
      throw new InputError("options", "an object with floor, ceiling and period", options);
    }
    checkFields(options, OPTIONS, "adaptiveRate");
    const floor = within("floor", options.floor, EXPECTS.rate, (n) => n > 0 && n <= MOST);
    const ceiling = within(
      "ceiling",
      options.ceiling,
      `a finite number of tokens from floor (${floor}) to ${MOST}`,
      (n) => n >= floor && n <= MOST,
    );
    const { period, start = floor, burst = period, latency = Number.POSITIVE_INFINITY, tolerance = 0.1 } = options;
    const { increase = (ceiling - floor) / 100, decrease = 0.7, every = 1000, now = Date.now } = options;
    within("period", period, EXPECTS.period, (n) => Number.isInteger(n) && n >= 1 && n <= MOST);
    within(
      "start",
      start,
      `a number of tokens from floor (${floor}) to ceiling (${ceiling})`,
      (n) => n >= floor && n <= ceiling,
    );
    within("burst", burst, `a number of ms from 0 to ${MOST}`, (n) => n >= 0 && n <= MOST);
    within("latency", latency, "a number of ms above 0", (n) => n > 0);
    within("tolerance", tolerance, "a number from 0 up to, but not, 1", (n) => n >= 0 && n < 1);
    within("increase", increase, `a number of tokens from 0 to ${MOST}`, (n) => n >= 0 && n <= MOST);
    within("decrease", decrease, "a number above 0 and below 1", (n) => n > 0 && n < 1);
    within("every", every, `a number of ms from 1 to ${MOST}`, (n) => n >= 1 && n <= MOST);
    if (typeof now !== "function") throw new InputError("now", "a function that tells ms", now);
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
   * The limit as of now: give it to each call as its `config`. The two numbers stay where they are, so what is owed stays
   * owed; only how fast it is paid changes. The same object until the rate changes.
   */
  config(): TokenBucketConfig {
    const { rate } = this;
    if (this.#config?.rate !== rate) {
      const { period, burst } = this.#set;
      // No request of one token could ever be granted from less.
      const capacity = Math.min(Math.max((rate * burst) / period, 1), MOST);
      this.#config = { kind: "token bucket", rate, period, capacity };
    }
    return this.#config;
  }

  /**
   * Tells that a request is sent, which takes so many tokens; call what it returns when the answer is there. What has no
   * answer after `latency` counts as bad by then already: nobody has to wait for the end of a queue to learn that it is long.
   */
  begin(count = 1): Done {
    within("count", count, EXPECTS.count, (n) => n >= 0 && n <= MOST);
    const now = this.#set.now();
    this.#step(now);
    const request = { at: now };
    this.#sent.add(request);
    this.#tokens += count;
    return (ended = {}) => {
      if (typeof ended !== "object" || ended === null) throw new InputError("ended", "an object with failed", ended);
      checkFields(ended, ENDED, "an ended request");
      const { failed = false } = ended;
      if (typeof failed !== "boolean") throw new InputError("failed", "true or false", failed);
      const now = this.#set.now();
      this.#step(now);
      if (!this.#sent.delete(request)) return;
      this.#ended++;
      if (failed || now - request.at > this.#set.latency) this.#bad++;
    };
  }

  /** Runs a request that takes so many tokens: a failure is where it throws. Its value or its error comes through. */
  async run<T>(request: () => T | Promise<T>, count?: number): Promise<T> {
    if (typeof request !== "function") throw new InputError("request", "a function", request);
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

  /** Ends the step where it is over: nothing runs in between, so whoever asks or tells next does it. */
  #step(now: number): void {
    const { floor, ceiling, period, tolerance, increase, decrease, every } = this.#set;
    const lasted = now - this.#stepAt;
    if (lasted >= 0 && lasted < every) return;
    this.#countLate(now);
    // A clock that was set back begins anew.
    if (lasted < 0) this.#sent.clear();
    else if (this.#bad > tolerance * this.#ended) {
      this.#rate = Math.max(floor, this.#rate * decrease);
      this.#sent.clear();
    } else if (this.#ended > 0 && this.#tokens >= (this.#rate * lasted) / period / 2) {
      // Only what was used was tried: a rate that nobody asks for must not rise until somebody does.
      this.#rate = Math.min(ceiling, this.#rate + increase);
    }
    this.#stepAt = now;
    this.#tokens = 0;
    this.#ended = 0;
    this.#bad = 0;
  }

  /** Each late request counts once, now or when it ends. */
  #countLate(now: number): void {
    for (const request of this.#sent) {
      if (now - request.at <= this.#set.latency) break;
      this.#sent.delete(request);
      this.#ended++;
      this.#bad++;
    }
  }
}

/**
 * A rate that follows the health of what it protects, between a floor and a ceiling. Ask the limiter with its `config()`,
 * and run the requests through it.
 *
 * ```ts
 * const upstream = adaptiveRate({ floor: 5, ceiling: 500, period: SECOND, latency: 300 });
 * const { ok } = limits.limit("upstream", { config: upstream.config() });
 * if (ok) await upstream.run(() => callUpstream());
 * ```
 *
 * After each step of `every` ms: where more than `tolerance` of the requests failed or took longer than `latency`, the rate
 * is multiplied by `decrease`; where they went well and at least half of the rate was used, `increase` is added; else it
 * stays. Several instances with the same settings come to about equal shares, whatever they began with, without knowing of each
 * other. Throws an `InputError` where an option is wrong.
 */
export function adaptiveRate(options: AdaptiveOptions): AdaptiveRate {
  return new AdaptiveRate(options);
}
