/** The types of an answer: the decision on a call, on several, and the two numbers of a state. */
import type { Policy } from "./config.ts";

/** Why a denial has no `retryAt`. */
export type Reason = "exceeds capacity" | "exceeds clock";

/** The decision on one call. A denial is a value, not an error. */
export interface Decision {
  /** Granted: now, or where `reserved`, at `retryAt`. */
  ok: boolean;
  /**
   * Tokens after the call; where it is denied, tokens now. Negative while tokens are owed. 0 where `reason` is
   * `"exceeds capacity"`: nothing is read then.
   */
  value: number;
  /** Epoch ms that `value` belongs to: the two project any later instant. */
  ts: number;
  /** `value` rounded down, at least 0. */
  remaining: number;
  /** The limit's capacity, in tokens. */
  limit: number;
  /**
   * Denied: the first ms (epoch) at which the same request would be granted, exactly: denied one ms before. Reserved:
   * the first ms at which it is paid for. Absent where granted now, where no wait helps, and where the store failed.
   */
  retryAt: number | undefined;
  /** The same as a wait, in ms from `now`. The header `Retry-After` has seconds: `rateLimitHeaders` of `tidegate/http` writes it. */
  retryAfter: number | undefined;
  /** Epoch ms at which the limit is full again, if nothing more is taken. */
  resetAt: number;
  /** Granted for later: paid for, to be run at `retryAt` without another request. */
  reserved: boolean;
  /** Why no wait helps. */
  reason: Reason | undefined;
  /** Epoch ms of the decision, on the clock that made it. */
  now: number;
  /** The limit that decided. */
  policy: Policy;
  /** Present where the store failed: the decision was made without it. */
  degraded?: true;
  /** The store's error, with `degraded`. */
  cause?: unknown;
  /** Present where the limit is a policy rule in shadow mode: what it decided. The decision itself allows the request. */
  shadow?: ShadowDecision;
}

/** What a limit in shadow mode decided. */
type ShadowDecision = Readonly<Pick<Decision, "ok" | "retryAt" | "retryAfter" | "reserved" | "reason">>;

/** The decision on several limits: all were taken or none. */
export interface AllDecision {
  /** All are granted: now, or at `retryAt` where one of `decisions` is reserved. */
  ok: boolean;
  /** Epoch ms. Denied: the largest of those that deny, absent where one of them has none. Reserved: the largest. */
  retryAt: number | undefined;
  /** The same as a wait, in ms from `now` of the decisions. */
  retryAfter: number | undefined;
  /** One per request, in order: `remaining` is there. Where `ok` is false nothing was taken, and each decision is what a check returns. */
  decisions: Decision[];
  /** Present where the store failed: the decision was made without it. */
  degraded?: true;
  /** The store's error, with `degraded`. */
  cause?: unknown;
}

/** The two numbers. */
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
