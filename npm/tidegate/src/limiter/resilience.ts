/** Stores that always decide: a deadline and a breaker for each call, and a decision without the store where it fails. */
import { RESERVE } from "../engine/generated/wire.ts";
import type { Duration } from "../limit/duration.ts";
import type { Decision, State } from "../limit/decision.ts";
import { isInputError, isStoreError, StoreError, type StoreErrorDetails } from "../limit/errors.ts";
import { opOf } from "../limit/evaluator.ts";
import type { Limit } from "../limit/limit.ts";
import type { AsyncStore, Call, Deadline, OnStoreError, Op, SyncStore } from "../stores/contract.ts";
import { failure, type KeyError } from "../stores/failure.ts";
import { Fallback } from "./fallback.ts";
import { type checkLog, type Log, Outages } from "./outages.ts";
import { afterWaiting, steadyNow } from "../limit/steady.ts";

/** What a limiter does about a store that fails. */
export interface Resilience {
  /**
   * When the store fails or is too slow: `"deny"` (the default), `"allow"`, or `{ local: fraction }`, an in-memory limit
   * at that fraction of the rate until the store answers again. Such a decision has `degraded: true` and the `cause`.
   */
  onStoreError?: OnStoreError | undefined;
  /**
   * How long a call waits for the store: ms from 1 to 2^31 - 1, or a text such as `"1s"`; default 250. The first connection
   * of the store's client is not counted: calls wait for it until 2 s after the first of them.
   */
  timeout?: Duration | undefined;
  /**
   * Logs when a node of the store fails, with the cause, and when it answers again: at most one pair of lines per minute
   * and node. Default the console; `false` logs nothing.
   */
  log?: Log | false | undefined;
}

/** The same, checked, with defaults; without a `log` nothing is logged. */
export interface Settings {
  readonly onStoreError: OnStoreError;
  readonly timeout: number;
  readonly log: ReturnType<typeof checkLog>;
  /** What the log says of denied calls, where their caller does something else with a denial. */
  readonly denied?: string;
}

/** A store of this package that takes many keys in one call. */
export interface Batch {
  decideMany(limit: Limit, keys: readonly string[], count: number, now: number | undefined): Decision[];
}
/** A store of this package that takes a call without an object for it. */
export interface Fast {
  decideFast(limit: Limit, key: string | undefined, count: number, flags: number, now: number): Decision;
}
/** A store whose only errors are the caller's mistakes. */
export interface InMemory {
  readonly cannotFail: true;
}

/** An asynchronous store that always decides, with its parts. */
export interface ResilientStore extends AsyncStore {
  /** The store's own decision within the deadline; rejects where there is none. `arrived` gets it later, too. */
  attempt(call: Call, now: number | undefined, arrived?: (decision: Decision) => void): Promise<Decision>;
  /** Calls `late` at the deadline of a call that begins now; the result cancels that. */
  atDeadline(operation: Op, target: Pick<Call, "limit" | "key">, late: (error: StoreError) => void): () => void;
  without(call: Call, now: number | undefined, cause: unknown): Decision;
}

/** ms. */
const LONGEST_CONNECT = 2000;

/** The part of {@link Call} that a reset has, too. */
type Target = Pick<Call, "limit" | "key">;

const identitiesOf = (targets: readonly Target[]): string =>
  targets.map(({ limit, key }) => limit.identity(key)).join(",");

/** The deadline passed: the server is down, or a connection is open on the client's side alone. */
class NoAnswer extends StoreError {}

const HALF_OPEN =
  ". If that lasts while the server is up, see the client's own errors. Without any, a connection may be half-open: set the socket timeouts of the client";

/** Counts a failure of the store. A mistake of the caller's is thrown on. */
function failed(outages: Outages, node: string, error: unknown, instead: string): void {
  if (isInputError(error)) throw error;
  const now = steadyNow();
  if (isStoreError(error) && error.scope === "key") {
    const { answered = true } = Object(error.cause) as Partial<KeyError>;
    outages.keyFailed(node, now, error, instead, answered);
  } else outages.failed(node, now, error, error instanceof NoAnswer ? instead + HALF_OPEN : instead);
}

const thrown = (cause: unknown): never => {
  throw cause;
};

/** The node; for several, all their names: a failure of a call on several nodes does not count against each. */
function nodeOf(store: AsyncStore, targets: readonly Target[]): string {
  if (store.nodeOf === undefined) return "";
  try {
    const names = targets.map(({ limit, key }) => store.nodeOf?.(limit, key) ?? "");
    return names.length === 1 ? (names[0] as string) : [...new Set(names)].sort().join(", ");
  } catch {
    // The store rejects the call itself, with the reason.
    return "";
  }
}

/** The decision that needs no server: as an answer of the store it would close the breaker of one that is down. */
function recalled(store: AsyncStore, call: Call, now: number | undefined): Decision | undefined {
  try {
    return store.recall?.(call, now);
  } catch {
    // As above.
    return undefined;
  }
}

/** The store behind a deadline and a breaker per node, with decisions in its place where it fails. */
export function resilient(store: AsyncStore, settings: Settings): ResilientStore {
  const fallback = new Fallback(settings.onStoreError, settings.denied);
  const outages = new Outages(store.name, settings.log);
  const timeoutOf = ({ limit }: Target): number => limit.timeout ?? settings.timeout;
  const detailsOf = (operation: string, targets: readonly Target[]): StoreErrorDetails => ({
    store: store.name,
    operation,
    identity: identitiesOf(targets),
  });
  const lateness = (timeout: number, operation: string, targets: readonly Target[]): NoAnswer =>
    new NoAnswer(`no answer within ${timeout} ms`, detailsOf(operation, targets));
  /** Until when calls wait for the client to connect. */
  let connectBy: number | undefined;

  /** Ends when the client has connected, or has had its time for that; absent where no call waits for it. */
  function connection(): Promise<unknown> | undefined {
    const { connecting } = store;
    if (connecting === undefined) return undefined;
    connectBy ??= steadyNow() + LONGEST_CONNECT;
    const wait = connectBy - steadyNow();
    if (wait <= 0) return undefined;
    return new Promise((resolve, reject) => {
      const cancel = afterWaiting(wait, () => resolve(undefined));
      void connecting.then(resolve, reject).then(cancel);
    });
  }

  /**
   * Runs an operation within its deadline. Rejects with the caller's own InputError; any other error ends in what
   * `without` returns or throws. One promise and one timer, because it runs for each call.
   */
  function run<T>(
    operation: string,
    targets: readonly Target[],
    send: (deadline: Deadline) => Promise<T>,
    without: (cause: unknown) => T = thrown,
  ): Promise<T> {
    /** Counts and logs what the node failed with. */
    const instead = (error: unknown, node: string): T => {
      const cause = failure(error, store.name, operation, identitiesOf(targets));
      failed(outages, node, cause, fallback.insteadOf(targets));
      return without(cause);
    };
    const start = (resolve: (result: T) => void, reject: (error: unknown) => void): void => {
      const timeout = Math.min(...targets.map(timeoutOf));
      const now = steadyNow();
      const node = nodeOf(store, targets);
      if (!outages.none && !outages.admits(node, now)) {
        const reason = "it has failed repeatedly; calls go to it again later";
        resolve(without(new StoreError(reason, detailsOf(operation, targets))));
        return;
      }
      let cancel: (() => void) | undefined;
      /** Ends the call once: with the store's answer, or at the deadline. */
      const end = (result: () => T): void => {
        if (cancel === undefined) return;
        cancel();
        cancel = undefined;
        try {
          resolve(result());
        } catch (cause) {
          reject(cause);
        }
      };
      const fail = (error: unknown): void => end(() => instead(error, node));
      const deadline: NonNullable<Deadline> = { at: now + timeout };
      const late = (): void => fail(deadline.why ?? lateness(timeout, operation, targets));
      let sent: Promise<T>;
      try {
        sent = Promise.resolve(send(deadline));
      } catch (error) {
        sent = Promise.reject(error);
      }
      // Not before the call is sent: its caller's deadline is never earlier than the store's.
      cancel = afterWaiting(timeout, late);
      const succeed = (result: T): void =>
        end(() => {
          if (!outages.none) outages.succeeded(node, steadyNow());
          return result;
        });
      const ended = sent.then(succeed, fail);
      // Calls of other requests may wait for this one: in a Worker it would stop with the request that made it.
      store.during?.(ended);
    };
    const connected = connection();
    if (connected === undefined) return new Promise(start);
    return connected.then(
      () => new Promise(start),
      (error) => instead(error, nodeOf(store, targets)),
    );
  }

  function attempt(
    call: Call,
    now: number | undefined,
    without?: (cause: unknown) => Decision,
    arrived?: (decision: Decision) => void,
  ): Promise<Decision> {
    const decision = recalled(store, call, now);
    if (decision !== undefined) {
      arrived?.(decision);
      return Promise.resolve(decision);
    }
    const send = (deadline: Deadline): Promise<Decision> => {
      const sent = store.decide(call, now, deadline);
      if (arrived !== undefined) sent.then(arrived).catch(() => {});
      return sent;
    };
    return run(call.op, [call], send, without);
  }

  return {
    name: store.name,
    sync: false,
    attempt: (call, now, arrived) => attempt(call, now, undefined, arrived),
    atDeadline: (operation, target, late) => {
      const timeout = timeoutOf(target);
      return afterWaiting(timeout, () => late(lateness(timeout, operation, [target])));
    },
    without: (call, now, cause) => fallback.one(call, now, cause),
    decide: (call, now) => attempt(call, now, (cause) => fallback.one(call, now, cause)),
    decideAll: (calls, now) =>
      run(
        "limitAll",
        calls,
        (deadline) => store.decideAll(calls, now, deadline),
        (cause) => fallback.several(calls, now, cause),
      ),
    reset: (limit, key): Promise<void> =>
      run("reset", [{ limit, key }], (deadline) => store.reset(limit, key, deadline)),
    getValue: (limit, key, now): Promise<State> =>
      run("getValue", [{ limit, key }], (deadline) => store.getValue(limit, key, now, deadline)),
  };
}

/**
 * A synchronous store, with decisions in its place where it throws. It has neither deadline nor breaker: nothing else
 * runs until it returns.
 */
export function resilientSync(
  store: SyncStore & Partial<Fast & Batch>,
  settings: Omit<Settings, "timeout">,
): SyncStore & Partial<Fast & Batch> {
  const fallback = new Fallback(settings.onStoreError, settings.denied);
  const outages = new Outages(store.name, settings.log);

  function attempt<T>(targets: readonly Pick<Call, "limit">[], run: () => T, instead?: (cause: unknown) => T): T {
    try {
      const result = run();
      if (!outages.none) outages.succeeded("", steadyNow());
      return result;
    } catch (error) {
      failed(outages, "", error, fallback.insteadOf(targets));
      if (instead === undefined) throw error;
      return instead(error);
    }
  }

  const guarded: SyncStore & Partial<Fast & Batch> = {
    name: store.name,
    sync: true,
    decide: (call, now) =>
      attempt(
        [call],
        () => store.decide(call, now),
        (cause) => fallback.one(call, now, cause),
      ),
    decideAll: (calls, now) =>
      attempt(
        calls,
        () => store.decideAll(calls, now),
        (cause) => fallback.several(calls, now, cause),
      ),
    reset: (limit, key) => attempt([{ limit }], () => store.reset(limit, key)),
    getValue: (limit, key, now) => attempt([{ limit }], () => store.getValue(limit, key, now)),
  };
  if (store.decideFast !== undefined) {
    // Not by `attempt`: two closures per decision.
    guarded.decideFast = (limit, key, count, flags, now) => {
      try {
        const decision = (store as Fast).decideFast(limit, key, count, flags, now);
        if (!outages.none) outages.succeeded("", steadyNow());
        return decision;
      } catch (error) {
        failed(outages, "", error, fallback.insteadOf([{ limit }]));
        const call: Call = { op: opOf(flags), limit, key, count, reserve: (flags & RESERVE) !== 0 };
        return fallback.one(call, now, error);
      }
    };
  }
  if (store.decideMany !== undefined) {
    guarded.decideMany = (limit, keys, count, now) =>
      attempt(
        [{ limit }],
        () => (store as Batch).decideMany(limit, keys, count, now),
        (cause) => keys.map((key) => fallback.one({ op: "take", limit, key, count, reserve: false }, now, cause)),
      );
  }
  return guarded;
}
