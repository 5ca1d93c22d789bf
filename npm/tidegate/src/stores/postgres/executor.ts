/** Executes batches of requests: sends one statement for each, again where the server undid it, and settles every request. */
import type { Cleanup } from "./cleanup.ts";
import type { Send } from "./client.ts";
import { type Fault, faultOf } from "./fault.ts";
import { type Kind, type PendingRequest, stillWaiting } from "./request.ts";
import { callRows, type FunctionCall, forgetRows, lockedRows, readRows, takeRow } from "./statements.ts";
import { type Bounds, NotSent, statementOf, Transport } from "./transport.ts";

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
  readonly cleanup: Cleanup | undefined;
}

/** ms that a statement of several keys waits for a lock, at most, and the part of the time left that it waits. */
export const LOCK_WAIT = 20;
const LOCK_PART = 1 / 4;
/** The session's own limit on a statement, `statement_timeout`, which may end before the wait for a lock does. */
const STATEMENT_TIMEOUT = "57014";
/** ms that a reply may take to come back. */
const ROUND_TRIP = 5;
/**
 * ms before its deadline from which no request is sent: while it waits for a connection of the client's, no timer could
 * withdraw it before the limiter has answered.
 */
const LEAST_REST = 3;

const deadlines = (requests: readonly PendingRequest[]): number[] => requests.map(({ deadline }) => deadline);

/** ms before its deadline from which a request is not sent where its statement has to wait for a lock. */
function marginOf(requests: readonly PendingRequest[]): number {
  const rest = Math.max(...deadlines(requests)) - performance.now();
  return Math.max(ROUND_TRIP, Math.min(LOCK_WAIT + ROUND_TRIP, rest / 2));
}

/** Requests on locked rows; see `locked-keys.ts`. */
export interface LockedRequests {
  has(id: string): boolean;
  /** Moves the requests on these rows to queues of their own; returns the others. */
  separate(requests: readonly PendingRequest[], ids: ReadonlySet<string>, cause: unknown): PendingRequest[];
}

export class Executor {
  readonly #options: QueueOptions;
  readonly #transport: Transport;
  readonly #locked: LockedRequests;
  /** After a serialization failure: calls run in transactions at READ COMMITTED, which wait and do not fail. */
  #committed = false;
  #noProcedure = false;

  constructor(options: QueueOptions, locked: LockedRequests) {
    this.#options = options;
    this.#transport = new Transport(options.send, options.timeout, options.statements);
    this.#locked = locked;
  }

  /** Settles every request of the batch, or moves it to the locked ones. `wait`: ms for a lock, where the rows are locked. */
  async execute(kind: Kind, batch: readonly PendingRequest[], wait?: number): Promise<void> {
    const { timeout, transaction, schema } = this.#options;
    const latest = performance.now() + timeout;
    // A request without a deadline has one from here on.
    if (!transaction) for (const pending of batch) pending.deadline = Math.min(pending.deadline, latest);
    let requests: PendingRequest[] = [...batch];
    let late = false;
    let tableLocked = false;
    for (let tries = 1; ; tries++) {
      const strict = tableLocked || wait !== undefined;
      requests = stillWaiting(requests, strict ? marginOf(requests) : LEAST_REST);
      if (requests.length === 0) return;
      const last = Math.max(...deadlines(requests));
      const bounds = transaction ? undefined : this.#bounds(requests, strict, late, wait);
      const committed = this.#committed && kind === "call" && !transaction;
      try {
        const call = this.#callOf(kind, requests, committed);
        call.resolve(await this.#transport.send(() => statementOf(schema, call, bounds, committed), last));
        // A clock of the caller's may not be the table's.
        for (const { created, now, ids } of requests) {
          if (created && now === undefined) void this.#options.cleanup?.created(ids[0] as string);
        }
        return;
      } catch (error) {
        const fault = faultOf(error, schema);
        const undone = wait !== undefined && fault.code === STATEMENT_TIMEOUT ? "lock" : fault.undone;
        if (committed && fault.noProcedure) {
          this.#committed = false;
          this.#noProcedure = true;
        } else if (undone === undefined || transaction) {
          await this.#failed(kind, requests, fault, error, wait);
          return;
        } else if (undone === "late") {
          late = true;
        } else if (undone === "lock") {
          if (wait !== undefined) {
            const ids = requests.flatMap((pending) => pending.ids.filter((id) => this.#locked.has(id)));
            this.#locked.separate(requests, new Set(ids), error);
            return;
          }
          const ids = await this.lockedIds(requests);
          tableLocked = ids === undefined;
          if (ids !== undefined) requests = this.#locked.separate(requests, ids, error);
        } else {
          const what = `concurrent transactions undid it until its deadline (${fault.code})`;
          for (const pending of requests) pending.failAtDeadline(what, error);
          if (undone === "conflict" && !this.#committed && !this.#noProcedure) this.#committed = true;
          else if (!(await pause(tries, last))) for (const pending of requests) pending.fail(what, error, "key");
        }
      }
    }
  }

  #bounds(requests: readonly PendingRequest[], strict: boolean, late: boolean, wait: number | undefined): Bounds {
    const now = performance.now();
    const [first, last] = [Math.min(...deadlines(requests)), Math.max(...deadlines(requests))];
    // A statement that may wait for long ends in time for the first of its requests.
    if (strict) {
      const lock = Math.min(wait ?? this.#options.timeout, first - now - ROUND_TRIP);
      return { lock, undo: first - ROUND_TRIP };
    }
    // Under load some request is always close to its deadline: it undoes the statement of the others once at most.
    return {
      lock: Math.min((last - now) * LOCK_PART, LOCK_WAIT),
      undo: Math.max(late ? last : first, now + LOCK_WAIT),
    };
  }

  /** Rejects the requests of a statement that failed for good. */
  async #failed(
    kind: Kind,
    requests: readonly PendingRequest[],
    fault: Fault,
    error: unknown,
    wait?: number,
  ): Promise<void> {
    if (requests.length > 1 && !this.#options.transaction && fault.ofRow) {
      // Nothing was written. Each is sent on its own, so that the one that fails fails alone.
      for (const pending of requests) await this.execute(kind, [pending], wait);
      return;
    }
    const cause = error instanceof NotSent ? undefined : error;
    const scope = fault.undone !== undefined || fault.ofRow ? "key" : "store";
    for (const pending of requests) pending.fail(fault.message, cause, scope);
  }

  #callOf(kind: Kind, requests: readonly PendingRequest[], committed: boolean): FunctionCall {
    if (kind === "read") return readRows(requests);
    if (kind === "reset") return forgetRows(requests);
    const [first] = requests as [PendingRequest];
    return requests.length === 1 && first.takes && !committed ? takeRow(first) : callRows(requests, committed);
  }

  /** The ids whose rows another transaction has locked; `undefined` where the table itself seems to be locked. */
  async lockedIds(requests: readonly PendingRequest[]): Promise<Set<string> | undefined> {
    const last = Math.max(...deadlines(requests));
    let locked: string[] = [];
    const call = lockedRows([...new Set(requests.flatMap(({ ids }) => ids))], (ids) => {
      locked = ids;
    });
    try {
      call.resolve(await this.#transport.send(() => statementOf(this.#options.schema, call), last));
      return new Set(locked);
    } catch (error) {
      const { undone } = faultOf(error, this.#options.schema);
      return undone === "conflict" || undone === "deadlock" ? new Set() : undefined;
    }
  }
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
