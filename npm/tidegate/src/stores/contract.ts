/**
 * What a limiter requires of a store: types only. Stores decide in one of three ways: in the engine (memory.ts,
 * addon-store.ts), in the database (redis/, postgres/), or here, between a read and a write (steps.ts). `swapStore` and
 * `transactional` make the last.
 */
import type { AllDecision, Decision, Operation, State } from "../limit/decision.ts";
import type { RateLimitError } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import type { LeaseOptions } from "../limiter/lease/options.ts";

export type { Op, Operation } from "../limit/decision.ts";

/** The key of a call; `undefined` for one limit that all share. */
export type Key = string | undefined;
/** Epoch ms by the limiter's clock; `undefined`: the store's own clock decides. */
export type Now = number | undefined;

/** One call on one limit and key, checked. */
export interface Call extends Operation {
  readonly limit: Limit;
  readonly key: string | undefined;
}

/** When the caller stops waiting. A limiter passes it to stores with promises. */
export type Deadline =
  | {
      /**
       * `performance.now()`, ms. If this process did not run at that time, the limiter moves it and waits longer.
       */
      at: number;
      /**
       * Why the call is late, as far as the store knows: the limiter's error at the deadline, instead of "no answer". With
       * `answered: false` it does not show that the store works.
       */
      why?: (Error & { readonly answered?: boolean }) | undefined;
    }
  | undefined;

interface StoreOf<Async extends boolean> {
  /** A short name, for errors and metrics. */
  readonly name: string;
  /** Whether its calls, and therefore the limiter's, return synchronously. */
  readonly sync: Async extends true ? false : true;
  /**
   * One atomic step on one limit. `now` is epoch ms; if it is absent, the store's own clock decides. A call that
   * waits in a queue of the store must not be sent once `deadline` has passed: its caller no longer waits.
   */
  decide(call: Call, now: number | undefined, deadline?: Deadline): Async extends true ? Promise<Decision> : Decision;
  /**
   * One atomic step on several limits, at least one: all are taken or none is. The calls' `op` is `"take"` or `"check"`,
   * all the same, and no two calls are on the same limit and key.
   */
  decideAll(
    calls: readonly Call[],
    now: number | undefined,
    deadline?: Deadline,
  ): Async extends true ? Promise<AllDecision> : AllDecision;
  /** Deletes the state of this limit and key, of every shard. */
  reset(limit: Limit, key: string | undefined, deadline?: Deadline): Async extends true ? Promise<void> : void;
  /** The limit's two numbers at `now`, of all its shards together. */
  getValue(
    limit: Limit,
    key: string | undefined,
    now: number | undefined,
    deadline?: Deadline,
  ): Async extends true ? Promise<State> : State;
}

/** A store that returns decisions synchronously. */
export interface SyncStore extends StoreOf<false> {}
/** What synchronous stores of this package may have besides. */
export interface Shortcuts {
  /** Decides without an object for the call; `flags` are its operation and `reserve`. */
  decideFast?(limit: Limit, key: string | undefined, count: number, flags: number, now: number): Decision;
  /** Decides on many keys in one call. */
  decideMany?(limit: Limit, keys: readonly string[], count: number, now: number | undefined): Decision[];
  /** Its only errors are mistakes in calls. */
  readonly cannotFail?: boolean;
}
/** A store that returns promises. */
export interface AsyncStore extends StoreOf<true> {
  /**
   * `layers` of `tidegate/store`: what a limiter needs for a store with promises. The stores of this package have it. A store
   * of your own needs it only in bundles for browsers and React Native, which contain it only through the store.
   */
  readonly layers?: object | undefined;
  /**
   * Its calls are part of the host's transaction: they have no deadline and no `onStoreError`. An error rejects, so that the
   * transaction is rolled back or run again.
   */
  readonly inTransaction?: true;
  /** The error of a denial if a call has `throws: true`, for hosts that send their own kind of error to clients. */
  denied?(limit: string, decision: Decision): RateLimitError;
  /**
   * How this process takes tokens ahead, to decide without the store: `true` or the settings. Limits of several shards
   * cannot be leased.
   */
  readonly lease?: boolean | LeaseOptions | undefined;
  /**
   * The node that serves this limit and key, such as a master of a cluster. The limiter has a breaker for each node, so a node
   * that fails does not affect calls on the others. Without this function the store is one node. It is called for each call,
   * so it must be fast, and return few different names.
   */
  nodeOf?(limit: Limit, key: string | undefined): string | undefined;
  /**
   * A decision without a call to the database, such as a cached denial; `undefined` if there is none. It does not show that the
   * store works, so the limiter's breaker does not count it.
   */
  recall?(call: Call, now: number | undefined): Decision | undefined;
  /**
   * Settles when the store's client has connected for the first time, or has failed to; absent if it is connected. Calls of a
   * limiter wait up to 2 s for it, which does not count as their `timeout`.
   */
  readonly connecting?: Promise<unknown> | undefined;
  /**
   * Keeps the host alive until work ends that no caller waits for, such as a Worker's `waitUntil`. The limiter passes each call
   * to it, because callers stop waiting at the deadline.
   */
  readonly during?: ((work: Promise<unknown>) => void) | undefined;
}
/** Where state is stored. */
export type Store = SyncStore | AsyncStore;
