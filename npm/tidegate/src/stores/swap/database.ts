/** A database that compares and swaps, as the steps of `../swap.ts` use it. */
import type { State } from "../../limit/decision.ts";
import type { Sharding } from "../../limit/shards.ts";

/** What is stored under an identity; `value` is `undefined` if nothing is. */
export interface Entry<Version> {
  readonly value: unknown;
  /** What the write compares. */
  readonly version: Version;
}

/** What to store under an identity; `state` is `null` to delete it. */
export interface Write {
  readonly state: State | null;
  /** Ms until the database may drop the entry. */
  readonly dropIn: number;
}

/** One identity of a step. */
export interface Change<Version> {
  readonly id: string;
  /** What the step has read; `undefined` if it has read nothing. */
  readonly seen: Entry<Version> | undefined;
  /** What it writes; `undefined` if it only reads, and what it has read must be unchanged. */
  readonly write: Write | undefined;
}

/** Entries that others write, or that are used too often, fail alone: calls on others go on. */
export type Busy = "entries" | "database";

/** The database, as this base uses it. */
export interface Swappable<Version> {
  readonly name: string;
  /**
   * What is stored under these identities, in their order; without `sharding` all at one time. No result is waited for after
   * `until`.
   */
  read(ids: readonly string[], until: number): Promise<readonly Entry<Version>[]>;
  /** Reads a stored value, or throws a `NotAState`. */
  decode(value: unknown): State;
  /**
   * Writes all of it if everything that was seen is unchanged, in one atomic step, before `until`; otherwise `false`. If
   * the server can refuse a write that is late, it does from `first` on, the first deadline of the step's calls: what is
   * taken after it is lost to that call.
   */
  swap(
    changes: readonly Change<Version>[],
    times: { readonly until: number; readonly first: number },
  ): Promise<boolean>;
  /** Whether `swap` compares every entry: what a step has not read (a reset reads nothing) is then read before it. */
  readonly comparesAll?: boolean;
  /**
   * What is busy if an error means that nothing was done and another attempt may succeed: entries of the step, or the
   * whole database. `undefined`: the error means anything else.
   */
  busy?(error: unknown): Busy | undefined;
  /** Whether a read that failed with this is sent again, once. One whose connection was reset (`ECONNRESET`, `EPIPE`) is. */
  readsAgain?(error: unknown): boolean;
  /** Why a read or a write may have no reply while the server works, such as a lock that a write waits for. */
  readonly unanswered?: { readonly read?: Error | undefined; readonly write: Error } | undefined;
  /** Round trips of a step, for which the time of its calls must suffice; default 2.1: a read, a write and a little more. */
  readonly trips?: number | undefined;
  /** Most ms of one step, its attempts included; default 10,000. How long a caller waits is its deadline. */
  readonly stepTimeout?: number;
  /** Without it, a limit with `shards` is one row. */
  readonly sharding?: Sharding | undefined;
}
