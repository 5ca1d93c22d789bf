/** Slows requests down according to the limits that a server reports. */
import { algebra } from "../engine/algebra.ts";
import { MAX_COUNT } from "../engine/generated/bounds.ts";
import type { Config } from "../limit/config.ts";
import type { State } from "../limit/decision.ts";
import { evaluate } from "../limit/evaluate.ts";
import type { Pace, Places } from "./queue.ts";
import type { ServerLimit, ServerLimits } from "./rate-limit-fields.ts";

/** One of the server's limits, of which little is left. */
interface Low {
  /** Spaces what is left evenly until the reset; absent if nothing is left. */
  readonly config: Config | undefined;
  /** Epoch ms of the reset. */
  readonly until: number;
  /** The requests sent since, as a debt. */
  state: State | null;
}

/** Requests in flight, so few that most are denied if the server grants one at a time: each round uses up one of three retries. */
const FEW = 3;
/** The most limits of one server that are kept. */
const MOST_LIMITS = 100;

/**
 * Delays requests that the server would deny, according to the limits that it reports. After a denial, no more requests may be in
 * flight than at that time, since most of the waiting ones would be denied again. Each round of grants allows one more, or, if
 * retries are denied and few are in flight, each second one, until the queue is idle.
 */
export class ServerPace implements Pace, Places {
  readonly #slowBelow: number;
  readonly #shared: Places | undefined;
  readonly #low: Map<string, Low> = new Map();
  /** The sizes of limits; if the server does not report one, the most that was left. */
  readonly #most: Map<string, number> = new Map();
  #until = 0;
  /** Requests in flight, and the most of them. */
  #inFlight = 0;
  #places = Infinity;
  /** Grants since the last place was added or taken, and how many rounds of them add one to a few. */
  #grants = 0;
  #rounds = 1;
  #sent = 0;
  #learned = 0;

  constructor(slowBelow: number, shared: Places | undefined) {
    this.#slowBelow = slowBelow;
    this.#shared = shared;
    // Loaded here: if a page's policy forbids WebAssembly, its first request fails, and not a later one.
    if (slowBelow > 0) algebra();
  }

  at(now: number): number {
    let at = Math.max(now, this.#until);
    for (const [name, low] of this.#low) {
      if (now >= low.until) this.#low.delete(name);
      else at = Math.max(at, this.#next(low, now));
    }
    return at;
  }

  /** Whether it delays requests, or will after the next one. */
  holds(now: number): boolean {
    return this.at(now) > now || this.#low.size > 0;
  }

  ran(now: number): void {
    for (const low of this.#low.values()) {
      if (low.config !== undefined) low.state = evaluate(low.state, low.config, { now, reserve: true }).state;
    }
  }

  tryAcquire(): boolean {
    if (!this.#hasPlace || this.#shared?.tryAcquire() === false) return false;
    this.#inFlight++;
    return true;
  }

  release(): void {
    this.#inFlight--;
    this.#shared?.release();
  }

  whenFree(callback: () => void): void {
    // Its own queue looks for a place at each release.
    if (this.#hasPlace) this.#shared?.whenFree(callback);
  }

  get #hasPlace(): boolean {
    return this.#inFlight < this.#places;
  }

  /** The number of a request that is sent now. */
  send(): number {
    return ++this.#sent;
  }

  /** The server denied a request in flight: delays all until then, epoch ms. A retry that is denied has used up one of a few. */
  denied(until: number, isRetry: boolean): void {
    this.#until = Math.max(this.#until, until);
    if (isRetry) this.#rounds = 2;
    this.#places = Math.min(this.#places, this.#inFlight);
    this.#grants = 0;
  }

  /** The server granted a request. */
  granted(): void {
    const rounds = this.#places > FEW ? 1 : this.#rounds;
    if (++this.#grants < Math.max(this.#places * rounds - 1, rounds)) return;
    this.#places++;
    this.#grants = 0;
  }

  /** No request waits or is in flight, so later requests do not belong to a burst that was denied. */
  idle(): void {
    this.#places = Infinity;
    this.#rounds = 1;
  }

  /** Applies the response to the request of this number, unless a later request's was applied. */
  learn({ limits }: ServerLimits, sent: number, now: number): void {
    if (sent < this.#learned) return;
    this.#learned = sent;
    // Of one name, as of two limiters of a server, the tightest.
    const least = new Map<string, ServerLimit>();
    for (const limit of limits) {
      const { remaining = Infinity, resetAfter = 0 } = least.get(limit.name) ?? {};
      const isLonger = limit.remaining === remaining && (limit.resetAfter ?? 0) > resetAfter;
      if (limit.remaining < remaining || isLonger) least.set(limit.name, limit);
    }
    for (const limit of least.values()) this.#apply(limit, now);
  }

  #apply({ name, unit, limit, remaining, resetAfter }: ServerLimit, now: number): void {
    const requests = unit === "requests";
    // The other requests in flight are not in the server's count yet.
    const left = requests ? Math.max(0, remaining - (this.#inFlight - 1)) : remaining;
    // A server that invents names must not fill the memory.
    if (this.#most.size >= MOST_LIMITS && !this.#most.has(name)) return;
    const most = limit ?? Math.max(remaining, this.#most.get(name) ?? 0);
    this.#most.set(name, most);
    const before = this.#low.get(name);
    this.#low.delete(name);
    // A request's cost in other units is unknown: they delay it only if nothing is left.
    const low = requests ? left < most * this.#slowBelow || left === 0 : left === 0;
    if (!low || resetAfter === undefined || resetAfter <= 0) return;
    // A server may report more than a config can have.
    const rate = Math.min(left, MAX_COUNT);
    const period = Math.min(Math.ceil(resetAfter), MAX_COUNT);
    const config: Config | undefined = left === 0 ? undefined : { kind: "token bucket", rate, period, capacity: 0 };
    this.#low.set(name, { config, until: now + resetAfter, state: before?.state ?? null });
  }

  #next({ config, until, state }: Low, now: number): number {
    if (config === undefined) return until;
    // The first request is not delayed.
    if (state === null) return now;
    const { retryAt } = evaluate(state, config, { now, count: 0, reserve: true }).decision;
    return Math.min(retryAt ?? now, until);
  }
}
