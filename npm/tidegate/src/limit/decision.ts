/** The types of an answer: the decision on a call, on several, and the two numbers of a state. */
import type { Policy } from "./config.ts";

/** Why a denial has no `retryAt`. */
export type Reason = "exceeds capacity" | "exceeds clock";

/** The decision on one call. A denial is a value, not an error. */
export interface Decision {
  /** Granted: now, or if `reserved`, at `retryAt`. */
  ok: boolean;
  /**
   * Tokens after the call; if it is denied, tokens now. Negative while tokens are owed. 0 if `reason` is
   * `"exceeds capacity"`, because no state is read then. With `shards` in rows of their own, a grant estimates it from two.
   */
  value: number;
  /** Epoch ms of `value`. `project` computes the value at a later time from the two. */
  ts: number;
  /** `value` rounded down, at least 0. */
  remaining: number;
  /** The limit's capacity, in tokens. */
  limit: number;
  /**
   * Epoch ms. Denied: the first ms at which the same request would be granted; one ms before, it is denied. Reserved: the
   * first ms at which it is paid for. Absent if granted now, if no wait helps, and if the store failed.
   */
  retryAt: number | undefined;
  /**
   * `retryAt` as a wait, in ms from `now`. For the header `Retry-After`, in seconds, use `rateLimitHeaders` of
   * `tidegate/http`.
   */
  retryAfter: number | undefined;
  /** Epoch ms at which the limit is full again, if nothing more is taken. */
  resetAt: number;
  /** Granted for later: run the work at `retryAt`, without another request. */
  reserved: boolean;
  /** Why no wait helps. */
  reason: Reason | undefined;
  /** Epoch ms of the decision, on the clock that made it. */
  now: number;
  /** The limit that decided. */
  policy: Policy;
  /** Present if the store failed: the decision was made without it. */
  degraded?: true;
  /** The store's error, if `degraded`. */
  cause?: unknown;
  /** Present if the limit is a policy rule in shadow mode: what it decided. The decision itself allows the request. */
  shadow?: ShadowDecision;
}

/** What a limit in shadow mode decided. */
type ShadowDecision = Readonly<Pick<Decision, "ok" | "retryAt" | "retryAfter" | "reserved" | "reason">>;

/** The decision on several limits: all were taken or none. */
export interface AllDecision {
  /** All are granted: now, or at `retryAt` if one of `decisions` is reserved. */
  ok: boolean;
  /** Epoch ms. Denied: the latest of the denials, absent if one of them has none. Reserved: the latest of all. */
  retryAt: number | undefined;
  /** `retryAt` as a wait, in ms from `now` of the decisions. */
  retryAfter: number | undefined;
  /**
   * One per request, in order. If `ok` is false, nothing was taken, and each decision is what a check would return.
   */
  decisions: Decision[];
  /** Present if the store failed: the decision was made without it. */
  degraded?: true;
  /** The store's error, if `degraded`. */
  cause?: unknown;
}

/** The two numbers of a key's state. */
export interface State {
  /** Tokens at `ts`; negative while tokens are owed. */
  value: number;
  /** Epoch ms: when `value` was computed; for a fixed window, where its window starts. */
  ts: number;
}

/** What a call does: takes tokens, checks, gives unused tokens back, takes tokens that are already spent, blocks the key. */
export type Op = "take" | "check" | "give" | "charge" | "block";

/** What one call does to the state of a key, whatever the limit. */
export interface Operation {
  readonly op: Op;
  /** Tokens, 0 to 2^40; of a block, its length in ms, 1 to 2^40. */
  readonly count: number;
  /** Whether tokens may be owed (take and check). */
  readonly reserve: boolean;
}
