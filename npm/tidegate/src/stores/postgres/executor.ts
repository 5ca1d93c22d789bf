/** Executes batches of requests: sends one statement for each, again if the server undid it, and settles every request. */
import { overdueTimers } from "../../limit/monotonic.ts";
import type { Send } from "./client.ts";
import { type Fault, faultOf } from "./fault.ts";
import { overdue, type PendingRequest, stillWaiting } from "./request.ts";
import { type Bounds, callRows, type FunctionCall, lockedRows, readRows, statementOf, takeRow } from "./statements.ts";
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

/** Not by `Math.max(…)`: all that wait for locked rows may be more than a function takes arguments. */
const lastDeadline = (requests: readonly PendingRequest[]): number =>
  requests.reduce((last, { deadline }) => Math.max(last, deadline), -Infinity);

/** A request with fewer ms left is not sent if its statement has to wait for a lock. */
function marginOf(requests: readonly PendingRequest[]): number {
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

/** A batch between two statements: the requests that are left, and how they are sent next. */
interface Course {
  /** ms that its statement waits for a lock if its rows are locked, or the table seems to be; `undefined`: a short time. */
  readonly lock: number | undefined;
  readonly requests: PendingRequest[];
  /** Statements that were sent for it. */
  readonly tries: number;
  /** Whether a statement was undone at the deadline of its first request. Later ones are undone at that of the last request. */
  readonly late: boolean;
  /** Whether the session's own limit has ended a statement. */
  readonly timedOut: boolean;
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

  /** Settles every request of the batch, or moves it to the locked ones. `lock`: ms for a lock, if the rows are locked. */
  async execute(batch: readonly PendingRequest[], lock?: number): Promise<void> {
    const { timeout, transaction } = this.#options;
    const latest = performance.now() + timeout;
    // A request without a deadline has one from here on.
    if (!transaction) for (const pending of batch) pending.latest = Math.min(pending.latest, latest);
    let next: Course | undefined = { lock, requests: [...batch], tries: 0, late: false, timedOut: false };
    while (next !== undefined) {
      await overdue(next.requests);
      const requests = stillWaiting(next.requests, next.lock === undefined ? LEAST_REST : marginOf(next.requests));
      if (requests.length === 0) return;
      const course: Course = { ...next, requests, tries: next.tries + 1 };
      const last = lastDeadline(requests);
      const byProcedure = this.#way === "procedure" && requests[0]?.reads === false && !transaction;
      try {
        await this.#send(course, byProcedure);
        return;
      } catch (error) {
        const moved = error instanceof NotSent && (await hasMoved(course, last));
        next = moved ? course : await this.#nextAfter(course, error, byProcedure);
      }
    }
  }

  /** Sends the requests in one statement, and resolves them by its reply. */
  async #send(course: Course, byProcedure: boolean): Promise<void> {
    const { transaction, schema, cleanup } = this.#options;
    const { requests } = course;
    const call = callOf(requests, byProcedure);
    const make = () => statementOf(schema, call, transaction ? undefined : this.#boundsOf(course), byProcedure);
    call.read(await this.#transmit(make, () => lastDeadline(requests)));
    // A clock of the caller's may not be the table's.
    for (const { created, now, ids } of requests) {
      if (created && now === undefined) void cleanup?.(ids[0] as string);
    }
  }

  #boundsOf({ requests, lock, late }: Course): Bounds {
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

  /** How what is left of the batch is sent after this error; `undefined`: its requests are settled or moved. */
  async #nextAfter(course: Course, thrown: unknown, byProcedure: boolean): Promise<Course | undefined> {
    const { transaction, schema } = this.#options;
    const error = thrown instanceof NotSent && this.#isFull ? this.#full.error : thrown;
    const fault = faultOf(error, schema);
    if (byProcedure && fault.noProcedure) {
      this.#way = "function only";
      return course;
    }
    const isTimeout = fault.code === STATEMENT_TIMEOUT;
    // If that happens again and no row was locked, the server is too slow for the session's limit.
    const undone = isTimeout && !course.timedOut ? "lock" : fault.undone;
    if (undone === undefined || transaction) return this.#failed(course, fault, error);
    for (const pending of course.requests) pending.answered();
    if (undone === "late") return { ...course, late: true };
    if (undone === "lock") return this.#leaveLocked({ ...course, timedOut: course.timedOut || isTimeout }, error);
    return this.#outlast(course, fault, error);
  }

  /** Rejects the requests of a statement that failed for good. */
  async #failed({ requests, lock }: Course, fault: Fault, error: unknown): Promise<undefined> {
    if (requests.length > 1 && !this.#options.transaction && fault.ofRow) {
      // Nothing was written. Halves are sent until the one that fails fails alone: few statements, for which others wait.
      const half = requests.length >> 1;
      await this.execute(requests.slice(0, half), lock);
      await this.execute(requests.slice(half), lock);
      return;
    }
    const cause = error instanceof NotSent ? undefined : error;
    const scope = fault.undone !== undefined || fault.ofRow ? "key" : "store";
    for (const pending of requests) pending.fail(fault.message, cause, scope);
  }

  /** Moves the requests on locked rows; the others are sent again. */
  async #leaveLocked(course: Course, error: unknown): Promise<Course> {
    const { requests } = course;
    const ids = await this.lockedIds(requests);
    if (ids === undefined) return { ...course, lock: this.#options.timeout };
    return { ...course, lock: undefined, requests: this.#separate(requests, ids, error) };
  }

  /**
   * After a conflict with other transactions, or without a connection: tries the procedure if that may help, or pauses.
   * `undefined`: no time is left.
   */
  async #outlast(course: Course, { undone, code, message }: Fault, error: unknown): Promise<Course | undefined> {
    const { requests, tries } = course;
    const isFull = undone === "no connection";
    if (isFull) this.#full = { until: performance.now() + FULL_FOR, error };
    const reason = isFull ? message : `concurrent transactions undid it until its deadline (${code})`;
    const scope = isFull ? "store" : "key";
    for (const pending of requests) pending.failAtDeadline(reason, error, scope);
    if (undone === "conflict" && this.#way === "function") {
      this.#way = "procedure";
      return course;
    }
    if (await pause(tries, lastDeadline(requests))) return course;
    for (const pending of requests) pending.fail(reason, error, scope);
    return undefined;
  }

  /** The ids whose rows another transaction has locked; `undefined` if the table itself seems to be locked. */
  async lockedIds(requests: readonly PendingRequest[]): Promise<Set<string> | undefined> {
    const { schema } = this.#options;
    const call = lockedRows([...new Set(requests.flatMap(({ ids }) => ids))]);
    const make = () => statementOf(schema, call);
    try {
      const reply = await this.#transmit(make, () => lastDeadline(requests));
      for (const pending of requests) pending.answered();
      return new Set(call.read(reply));
    } catch (error) {
      const { undone } = faultOf(error, schema);
      return undone === "conflict" || undone === "deadlock" ? new Set() : undefined;
    }
  }
}

/** Whether the last deadline is later now than `last`: this process did not run at that time. */
async function hasMoved({ requests }: Course, last: number): Promise<boolean> {
  await overdueTimers(last);
  return lastDeadline(requests) > last;
}

function callOf(requests: readonly PendingRequest[], byProcedure: boolean): FunctionCall {
  const [first] = requests as [PendingRequest];
  if (first.reads) return readRows(requests);
  return requests.length === 1 && first.takes && !byProcedure ? takeRow(first) : callRows(requests);
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
