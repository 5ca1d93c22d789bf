import { checkTimeout } from "./config.ts";
import type { AllDecision, Decision, State } from "./decision.ts";
import { isInputError, isStoreError, StoreError, type StoreErrorDetails } from "./errors.ts";
import { fallback } from "./fallback.ts";
import type { Limit } from "./limit.ts";
import type { AsyncStore, Call, OnStoreError } from "./store.ts";

/** What a limiter does about a store that fails. */
export interface Resilience {
  /**
   * When the store fails or is too slow: `"deny"` (the default), `"allow"`, or `{ local: fraction }`, an in-memory limit
   * at that fraction of the rate until the store answers again. Such a decision says `degraded: true` and why.
   */
  onStoreError?: OnStoreError | undefined;
  /** ms that a call waits for the store: 1 to 2^31 - 1; default 250. */
  timeout?: number | undefined;
}

const DEFAULT_TIMEOUT = 250;
/** After so many failures in a row, calls no longer wait: one in a while asks whether the store is back. */
const FAILURES_TO_OPEN = 5;
/** ms between two such questions, at first and at most. */
const PROBE_AFTER = 100;
const PROBE_AFTER_MOST = 5000;

/** Counts failures in a row; open, it lets one question through at a time, ever more rarely. */
class Breaker {
  #failures = 0;
  #probeAt = 0;
  #wait = PROBE_AFTER;

  /** Whether a call may go to the store. */
  admits(now: number): boolean {
    if (this.#failures < FAILURES_TO_OPEN) return true;
    if (now < this.#probeAt) return false;
    this.#probeAt = now + this.#wait;
    this.#wait = Math.min(this.#wait * 2, PROBE_AFTER_MOST);
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#wait = PROBE_AFTER;
  }

  failed(now: number): void {
    if (++this.#failures === FAILURES_TO_OPEN) this.#probeAt = now + this.#wait;
  }
}

/** A store that always answers, and what it is made of. */
export interface ResilientStore extends AsyncStore {
  /** The store's own answer within the deadline; rejects where there is none. */
  attempt(call: Call, now: number | undefined): Promise<Decision>;
  /** What is waited for within the call's deadline; rejects where it does not come. */
  within<T>(call: Call, awaited: Promise<T>): Promise<T>;
  /** What is answered without the store. */
  without(call: Call, now: number, cause: unknown): Decision;
}

/** Waits so long, and rejects with a StoreError then. */
async function inTime<T>(timeout: number, details: StoreErrorDetails, awaited: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreError(`no answer within ${timeout} ms`, details)), timeout);
  });
  try {
    return await Promise.race([awaited, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** The store behind a deadline, a breaker, and what to answer where it does not. */
export function resilient(store: AsyncStore, options: Resilience): ResilientStore {
  const { one, several } = fallback(options.onStoreError);
  const timeoutByDefault = checkTimeout(options.timeout) ?? DEFAULT_TIMEOUT;
  const breaker = new Breaker();

  /** The store's answer within the deadline; rejects with a StoreError, or the caller's own InputError. */
  async function ask<T>(
    operation: string,
    identity: string,
    timeout: number,
    run: (deadline: number) => Promise<T>,
  ): Promise<T> {
    const now = performance.now();
    const details = { store: store.name, operation, identity };
    if (!breaker.admits(now)) throw new StoreError("it has failed repeatedly and is asked again later", details);
    try {
      const answer = await inTime(timeout, details, run(now + timeout));
      breaker.succeeded();
      return answer;
    } catch (error) {
      if (isInputError(error)) throw error;
      if (isStoreError(error) && error.scope === "key") breaker.succeeded();
      else breaker.failed(performance.now());
      if (error instanceof StoreError) throw error;
      const what = error instanceof Error ? error.message : String(error);
      throw new StoreError(what, { ...details, cause: error });
    }
  }

  const timeoutOf = (limit: Limit): number => limit.timeout ?? timeoutByDefault;

  const attempt = (call: Call, now: number | undefined): Promise<Decision> =>
    ask(call.op, call.limit.identity(call.key), timeoutOf(call.limit), (deadline) => store.decide(call, now, deadline));

  return {
    name: store.name,
    sync: false,
    attempt,
    within: (call, awaited) => {
      const details = { store: store.name, operation: call.op, identity: call.limit.identity(call.key) };
      return inTime(timeoutOf(call.limit), details, awaited);
    },
    without: one,
    async decide(call, now): Promise<Decision> {
      try {
        return await attempt(call, now);
      } catch (error) {
        if (isInputError(error)) throw error;
        return one(call, Math.floor(now ?? Date.now()), error);
      }
    },
    async decideAll(calls, now): Promise<AllDecision> {
      const identity = calls.map((call) => call.limit.identity(call.key)).join(",");
      const timeout = Math.min(...calls.map((call) => timeoutOf(call.limit)));
      try {
        return await ask("limitAll", identity, timeout, (deadline) => store.decideAll(calls, now, deadline));
      } catch (error) {
        if (isInputError(error)) throw error;
        const at = Math.floor(now ?? Date.now());
        return several(calls, at, error);
      }
    },
    reset: (limit, key): Promise<void> =>
      ask("reset", limit.identity(key), timeoutOf(limit), (deadline) => store.reset(limit, key, deadline)),
    getValue: (limit, key, now): Promise<State> =>
      ask("getValue", limit.identity(key), timeoutOf(limit), (deadline) => store.getValue(limit, key, now, deadline)),
  };
}
