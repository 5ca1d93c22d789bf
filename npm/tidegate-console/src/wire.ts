/** What the handler sends to its page, as JSON. */

/** Seconds that the counts reach back, the current one included. */
export const SPAN = 600;

/** The counts of one limit: one number for each second. */
export interface LimitFigures {
  /** The limit's name; `null` for all names beyond those that are counted separately. */
  readonly name: string | null;
  /** Such as `10 tokens per 1 s, capacity 20`; absent before the first decision. */
  readonly policy: string | undefined;
  readonly granted: readonly number[];
  readonly denied: readonly number[];
  /** Decisions of the last 10 min that were made without the store, because it failed. */
  readonly degraded: number;
}

/** A key that is denied often, with bounds of the number of its denials in the last 10 min. */
export interface TopKey {
  readonly name: string | null;
  /** `null` for a limit that all share. */
  readonly key: string | null;
  readonly atLeast: number;
  readonly atMost: number;
}

/** The event `figures` of the stream, once a second. */
export interface Figures {
  /** Epoch ms on the server. */
  readonly now: number;
  /** Epoch ms since when this process counts. */
  readonly since: number;
  /** Changes with the process. */
  readonly process: string;
  /** Their arrays end at the second of `now`. */
  readonly limits: readonly LimitFigures[];
  /** The names of the defined limits, whose keys can be read and changed. */
  readonly defined: readonly string[];
  readonly top: readonly TopKey[];
  /** The limits with a switch for shadow mode, in this process; empty if there is none. */
  readonly switches: readonly Switch[];
}

/** Whether a limit is in shadow mode: it denies nothing. */
export interface Switch {
  readonly name: string;
  readonly on: boolean;
}

export interface Denial {
  /** Consecutive within a process. */
  readonly id: number;
  /** Epoch ms. */
  readonly at: number;
  readonly name: string;
  readonly key: string | null;
  /** Requested tokens. */
  readonly count: number;
  /** ms; `null` if no wait helps. */
  readonly retryAfter: number | null;
  readonly degraded: boolean;
}

/** The event `denials` of the stream: the newest, oldest first. */
export interface Denials {
  readonly denials: readonly Denial[];
  /** Denials since the previous event that are not listed. */
  readonly skipped: number;
}

/** What the page may request of one key; beside it there is the operation `shadow` of a limit. */
export const OPERATIONS = ["read", "reset", "give", "charge", "block"] as const;

export type Operation = (typeof OPERATIONS)[number];

export interface OperationRequest {
  readonly operation: Operation;
  readonly name: string;
  /** Absent for a limit that all share. */
  readonly key?: string;
  /** Tokens: what to give or charge, and the request whose next grant is reported; default 1. */
  readonly count?: number;
  /** Of a block, its length: ms, or a string such as `"15m"`. */
  readonly for?: number | string;
}

/** Switches a limit's shadow mode, in this process. Answered with the {@link Switch}. */
export interface SwitchRequest extends Switch {
  readonly operation: "shadow";
}

/** The state of one key after the operation. */
export interface KeyState {
  /** Epoch ms, on the clock that decided. */
  readonly now: number;
  /** Tokens now; negative while tokens are owed. */
  readonly value: number;
  /** The capacity, in tokens. */
  readonly capacity: number;
  readonly policy: string;
  /** Epoch ms at which the limit is full. */
  readonly resetAt: number;
  /** Whether a request for `count` tokens is granted now; otherwise when, if ever. */
  readonly next: { readonly count: number; readonly ok: boolean; readonly retryAt: number | null };
  /** Whether the store failed, so that the numbers are not its own. */
  readonly degraded: boolean;
}
