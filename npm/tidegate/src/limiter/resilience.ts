import { checkTimeout } from "../limit/config.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import { isInputError, isStoreError, messageOf, StoreError, type StoreErrorDetails } from "../limit/errors.ts";
import { fallback } from "./fallback.ts";
import type { Limit } from "../limit/limit.ts";
import { checkLog, type Log, Outages } from "./outages.ts";
import type { AsyncStore, Call, OnStoreError } from "../stores/contract.ts";

/** What a limiter does about a store that fails. */
export interface Resilience {
  /**
   * When the store fails or is too slow: `"deny"` (the default), `"allow"`, or `{ local: fraction }`, an in-memory limit
   * at that fraction of the rate until the store answers again. Such a decision says `degraded: true` and why.
   */
  onStoreError?: OnStoreError | undefined;
  /** ms that a call waits for the store: 1 to 2^31 - 1; default 250. */
  timeout?: number | undefined;
  /**
   * Where a line goes when a node of the store fails, with its cause, and when it answers again: at most one pair of
   * them a minute for each node. Default the console; `false` logs nothing.
   */
  log?: Log | false | undefined;
}

const DEFAULT_TIMEOUT = 250;

/** A store that always answers, and what it is made of. */
export interface ResilientStore extends AsyncStore {
  /** The store's own answer within the deadline; rejects where there is none. */
  attempt(call: Call, now: number | undefined): Promise<Decision>;
  /** What is waited for within the call's deadline; rejects where it does not come. */
  within<T>(call: Call, awaited: Promise<T>): Promise<T>;
  /** What is answered without the store. */
  without(call: Call, now: number, cause: unknown): Decision;
}

/** What a call is about. */
type Target = Pick<Call, "limit" | "key">;

const identityOf = (targets: readonly Target[]): string =>
  targets.map(({ limit, key }) => limit.identity(key)).join(",");

/** The deadline passed: the server may be down, or a connection of the client's open on this side alone. */
class NoAnswer extends StoreError {}

const HALF_OPEN =
  ". If that lasts while the server is up, a connection may be half-open: set the socket timeouts of the client";
const hint = (error: StoreError): string => (error instanceof NoAnswer ? HALF_OPEN : "");

/** Waits so long, and rejects with a StoreError then. */
async function inTime<T>(timeout: number, details: () => StoreErrorDetails, awaited: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new NoAnswer(`no answer within ${timeout} ms`, details())), timeout);
  });
  try {
    return await Promise.race([awaited, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** The store behind a deadline, a breaker for each node, and what to answer where it does not. */
export function resilient(store: AsyncStore, options: Resilience): ResilientStore {
  const { one, several, insteadOf } = fallback(options.onStoreError);
  const timeoutByDefault = checkTimeout(options.timeout) ?? DEFAULT_TIMEOUT;
  const outages = new Outages(store.name, checkLog(options.log));

  /** The node, or all of several: a failure of a call on several nodes counts for these together, not for each. */
  function nodeOf(targets: readonly Target[]): string {
    if (store.nodeOf === undefined) return "";
    try {
      const names = targets.map(({ limit, key }) => store.nodeOf?.(limit, key) ?? "");
      return names.length === 1 ? (names[0] as string) : [...new Set(names)].sort().join(", ");
    } catch {
      // What the store cannot place it will reject, with the reason.
      return "";
    }
  }

  /** The store's answer within the deadline; rejects with a StoreError, or the caller's own InputError. */
  async function ask<T>(
    operation: string,
    targets: readonly Target[],
    timeout: number,
    run: (deadline: number) => Promise<T>,
  ): Promise<T> {
    const now = performance.now();
    const node = nodeOf(targets);
    const details = (): StoreErrorDetails => ({ store: store.name, operation, identity: identityOf(targets) });
    if (!outages.admits(node, now)) {
      throw new StoreError("it has failed repeatedly and is asked again later", details());
    }
    try {
      const answer = await inTime(timeout, details, run(now + timeout));
      if (!outages.none) outages.succeeded(node, performance.now());
      return answer;
    } catch (error) {
      if (isInputError(error)) throw error;
      const failure = isStoreError(error) ? error : new StoreError(messageOf(error), { ...details(), cause: error });
      const instead = insteadOf(targets[0]?.limit);
      if (failure.scope === "key") outages.keyFailed(node, performance.now(), failure, instead);
      else outages.failed(node, performance.now(), failure, instead + hint(failure));
      throw failure;
    }
  }

  const timeoutOf = (limit: Limit): number => limit.timeout ?? timeoutByDefault;

  const attempt = (call: Call, now: number | undefined): Promise<Decision> =>
    ask(call.op, [call], timeoutOf(call.limit), (deadline) => store.decide(call, now, deadline));

  return {
    name: store.name,
    sync: false,
    attempt,
    within: (call, awaited) => {
      const details = () => ({ store: store.name, operation: call.op, identity: identityOf([call]) });
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
      const timeout = Math.min(...calls.map((call) => timeoutOf(call.limit)));
      try {
        return await ask("limitAll", calls, timeout, (deadline) => store.decideAll(calls, now, deadline));
      } catch (error) {
        if (isInputError(error)) throw error;
        const at = Math.floor(now ?? Date.now());
        return several(calls, at, error);
      }
    },
    reset: (limit, key): Promise<void> =>
      ask("reset", [{ limit, key }], timeoutOf(limit), (deadline) => store.reset(limit, key, deadline)),
    getValue: (limit, key, now): Promise<State> =>
      ask("getValue", [{ limit, key }], timeoutOf(limit), (deadline) => store.getValue(limit, key, now, deadline)),
  };
}
