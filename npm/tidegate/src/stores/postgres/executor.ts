/** Executes batches of requests: sends one statement for each, again if the server undid it, and settles every request. */
import { overdueTimers } from "../../limit/monotonic.ts";
import type { Send } from "./client.ts";
import { type Fault, faultOf } from "./fault.ts";
import { lastDeadline, overdue, type PendingRequest, stillWaiting } from "./request.ts";
import { type Bounds, callOf, lockedRows, statementOf } from "./statements.ts";
import { NotSent, senderOf, type SendInTime } from "./transport.ts";

export interface QueueOptions {
  readonly send: Send;
  /** The schema's name, quoted. */
  readonly schema: string;
  /** Statements that are out at one time. */
  readonly statements: number;
  /** Most requests in one statement. */
  readonly batch: number;
  /** ms that a statement may take. */
  readonly timeout: number;
  /** Whether the statements are part of a transaction of the caller's: they are sent once, without bounds. */
  readonly transaction: boolean;
  /** Deletes full rows after calls that make rows; absent in a transaction of the caller's. */
  readonly cleanup: ((id: string) => Promise<void>) | undefined;
}

/** ms that a statement of several keys waits for a lock, at most, and the part of the time left that it waits. */
export const LOCK_WAIT = 20;
const LOCK_PART = 1 / 4;
/** ms for which one statement is sent at a time after the server had no connection left. */
const FULL_FOR = 1000;
/** The session's own limit on a statement, `statement_timeout`, ended it, perhaps while it waited for a lock. */
const STATEMENT_TIMEOUT = "57014";
/** ms that a reply may take to come back. */
const ROUND_TRIP = 5;
/**
 * A request with fewer ms left is not sent. If the client has no connection free, no timer could withdraw it before the limiter
 * answers its caller.
 */
const LEAST_REST = 3;

/** The ms that a request must have left to be sent: more if its statement has to wait for a lock. */
function marginOf({ requests, lock }: Batch): number {
  if (lock === undefined) return LEAST_REST;
  const rest = lastDeadline(requests) - performance.now();
  return Math.max(ROUND_TRIP, Math.min(LOCK_WAIT + ROUND_TRIP, rest / 2));
}

/** Moves the requests on these locked rows to those that are sent apart; returns the others. */
type Separate = (requests: readonly PendingRequest[], ids: ReadonlySet<string>, cause: unknown) => PendingRequest[];

/**
 * How calls are executed: by a function, in one statement. After a serialization failure by a procedure, in transactions at
 * READ COMMITTED, which wait instead. If procedures do not work here: by the function only.
 */
type Way = "function" | "procedure" | "function only";

/** The requests that share a statement, and how it is sent next. */
interface Batch {
  requests: readonly PendingRequest[];
  /** ms that its statement waits for a lock if its rows are locked, or the table seems to be; `undefined`: a short time. */
  lock: number | undefined;
  /** Statements that were sent for it. */
  tries: number;
  /** Whether a statement was undone at the deadline of its first request. Later ones are undone at that of the last request. */
  late: boolean;
  /** Whether the session's own limit has ended a statement. */
  timedOut: boolean;
}

export class Executor {
  readonly #options: QueueOptions;
  readonly #transmit: SendInTime;
  readonly #separate: Separate;
  #way: Way = "function";
  /** Until when (`performance.now()`, ms) the server counts as having no connection left, and its error. */
  #full: { readonly until: number; readonly error?: unknown } = { until: -Infinity };

  constructor(options: QueueOptions, separate: Separate) {
    this.#options = options;
    this.#transmit = senderOf(options.send, options.timeout, options.statements);
    this.#separate = separate;
  }

  /** How many statements may be out: one if the server has no more connections, as this process may have one. */
  get statements(): number {
    return this.#isFull ? 1 : this.#options.statements;
  }

  get #isFull(): boolean {
    return performance.now() < this.#full.until;
  }

  /** Settles every request, or moves it to the locked ones. `lock`: ms for a lock, if the rows are locked. */
  async execute(requests: readonly PendingRequest[], lock?: number): Promise<void> {
    const { timeout, transaction } = this.#options;
    const latest = performance.now() + timeout;
    // A request without a deadline has one from here on.
    if (!transaction) for (const pending of requests) pending.latest = Math.min(pending.latest, latest);
    const batch: Batch = { requests, lock, tries: 0, late: false, timedOut: false };
    for (;;) {
      await overdue(batch.requests);
      batch.requests = stillWaiting(batch.requests, marginOf(batch));
      if (batch.requests.length === 0) return;
      batch.tries++;
      const last = lastDeadline(batch.requests);
      const byProcedure = this.#way === "procedure" && batch.requests[0]?.reads === false && !transaction;
      try {
        return await this.#send(batch, byProcedure);
      } catch (error) {
        if (error instanceof NotSent && (await hasMoved(batch, last))) continue;
        if (!(await this.#isSentAgain(batch, error, byProcedure))) return;
      }
    }
  }

  /** Sends the requests in one statement, and resolves them by its reply. */
  async #send(batch: Batch, byProcedure: boolean): Promise<void> {
    const { transaction, schema, cleanup } = this.#options;
    const { requests } = batch;
    const call = callOf(requests, byProcedure);
    const make = () => statementOf(schema, call, transaction ? undefined : this.#boundsOf(batch), byProcedure);
    call.read(await this.#transmit(make, () => lastDeadline(requests)));
    // A clock of the caller's may not be the table's.
    for (const { created, now, ids } of requests) {
      if (created && now === undefined) void cleanup?.(ids[0] as string);
    }
  }

  #boundsOf({ requests, lock, late }: Batch): Bounds {
    const now = performance.now();
    const first = Math.min(...requests.map(({ deadline }) => deadline));
    // A statement that may wait for long ends in time for the first of its requests.
    if (lock !== undefined) return { lock: Math.min(lock, first - now - ROUND_TRIP), undo: first - ROUND_TRIP };
    const last = lastDeadline(requests);
    // Under load some request is always close to its deadline: it undoes the statement of the others once at most.
    return {
      lock: Math.min((last - now) * LOCK_PART, LOCK_WAIT),
      undo: Math.max(late ? last : first, now + LOCK_WAIT),
    };
  }

  /** Whether what is left of the batch is sent again after this error; if not, its requests are settled. */
  async #isSentAgain(batch: Batch, thrown: unknown, byProcedure: boolean): Promise<boolean> {
    const { transaction, schema, timeout } = this.#options;
    const { requests } = batch;
    const error = thrown instanceof NotSent && this.#isFull ? this.#full.error : thrown;
    const fault = faultOf(error, schema);
    if (byProcedure && fault.noProcedure) {
      this.#way = "function only";
      return true;
    }
    const isTimeout = fault.code === STATEMENT_TIMEOUT;
    // If that happens again and no row was locked, the server is too slow for the session's limit.
    const undone = isTimeout && !batch.timedOut ? "lock" : fault.undone;
    if (undone === undefined || transaction) {
      await this.#fail(batch, fault, error);
      return false;
    }
    for (const pending of requests) pending.answered = true;
    if (undone === "late") batch.late = true;
    else if (undone === "lock") {
      batch.timedOut ||= isTimeout;
      const ids = await this.lockedIds(requests);
      batch.lock = ids === undefined ? timeout : undefined;
      if (ids !== undefined) batch.requests = this.#separate(requests, ids, error);
    } else return this.#outlasts(batch, fault, error);
    return true;
  }

  /** Rejects the requests of a statement that failed for good. */
  async #fail({ requests, lock }: Batch, fault: Fault, error: unknown): Promise<void> {
    if (requests.length > 1 && !this.#options.transaction && fault.ofRow) {
      // Nothing was written. Halves are sent until the one that fails fails alone: few statements, for which others wait.
      const half = requests.length >> 1;
      await this.execute(requests.slice(0, half), lock);
      return this.execute(requests.slice(half), lock);
    }
    const cause = error instanceof NotSent ? undefined : error;
    const scope = fault.undone !== undefined || fault.ofRow ? "key" : "store";
    for (const pending of requests) pending.fail(fault.message, cause, scope);
  }

  /**
   * After a conflict with other transactions, or without a connection: tries the procedure if that may help, or pauses.
   * `false`: no time was left, and the requests are rejected.
   */
  async #outlasts({ requests, tries }: Batch, { undone, code, message }: Fault, error: unknown): Promise<boolean> {
    const isFull = undone === "no connection";
    if (isFull) this.#full = { until: performance.now() + FULL_FOR, error };
    const isUnsent = isFull || undone === "idle session";
    const reason = isUnsent ? message : `concurrent transactions undid it until its deadline (${code})`;
    const scope = isUnsent ? "store" : "key";
    for (const pending of requests) pending.failAtDeadline(reason, error, scope);
    if (undone === "conflict" && this.#way === "function") {
      this.#way = "procedure";
      return true;
    }
    if (await pause(tries, lastDeadline(requests))) return true;
    for (const pending of requests) pending.fail(reason, error, scope);
    return false;
  }

  /** The ids whose rows another transaction has locked; `undefined` if the table itself seems to be locked. */
  async lockedIds(requests: readonly PendingRequest[]): Promise<Set<string> | undefined> {
    const { schema } = this.#options;
    const call = lockedRows([...new Set(requests.flatMap(({ ids }) => ids))]);
    const make = () => statementOf(schema, call);
    try {
      const reply = await this.#transmit(make, () => lastDeadline(requests));
      for (const pending of requests) pending.answered = true;
      return new Set(call.read(reply));
    } catch (error) {
      const { undone } = faultOf(error, schema);
      return undone === "conflict" || undone === "deadlock" ? new Set() : undefined;
    }
  }
}

/** Whether the last deadline is later now than `last`: this process did not run at that time. */
async function hasMoved({ requests }: Batch, last: number): Promise<boolean> {
  await overdueTimers(last);
  return lastDeadline(requests) > last;
}

/** ms; the pause is drawn evenly from 0 to twice as much each time, and never above the last. */
const FIRST_PAUSE = 2;
const MOST_PAUSE = 50;
/** A pause is at most this part of the time left, so that retries become denser towards the deadline. */
const PART_OF_REST = 1 / 4;

/** Pauses before the next try. `false`: no time is left until then (`performance.now()`). */
async function pause(tries: number, until: number): Promise<boolean> {
  const rest = until - performance.now();
  if (!(rest > 1)) return false;
  const ms = Math.random() * Math.min(MOST_PAUSE, FIRST_PAUSE * 2 ** tries, rest * PART_OF_REST);
  await new Promise((resolve) => setTimeout(resolve, ms));
  return true;
}
