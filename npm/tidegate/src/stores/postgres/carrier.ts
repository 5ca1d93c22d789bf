/** Sends the calls of one statement, again where the server undid it, and settles each. */
import type { Ask } from "./client.ts";
import { type Fault, faultOf, pause } from "./conflict.ts";
import { byteasOf } from "./identity.ts";
import type { Pending } from "./pending.ts";
import { forget, readMany, takeMany, takeOne, type Turn } from "./plain.ts";
import { runMany } from "./program.ts";
import type { Kind } from "./select.ts";
import { NotSent, Sender, statementOf } from "./sender.ts";

/** Settings of a queue. */
export interface QueueOptions {
  readonly ask: Ask;
  /** The schema's name, quoted. */
  readonly schema: string;
  /** Statements that are out at one time. */
  readonly statements: number;
  /** Calls in one statement. */
  readonly batch: number;
  /** ms that a statement may take. */
  readonly timeout: number;
  /** Whether it is bound to a transaction of the caller's: its statements are sent once, and wait as that does. */
  readonly transaction: boolean;
}

/** ms that a statement of several keys waits for a lock, at most, and the part of the time left that it waits. */
export const LOCK_WAIT = 20;
const LOCK_PART = 1 / 4;
/** ms that an answer may take to come back. */
const ROUND_TRIP = 5;

/** ms before its deadline from which a call is not sent where its statement has to wait for a lock. */
function marginOf(calls: readonly Pending[]): number {
  const rest = Math.max(...calls.map(({ deadline }) => deadline)) - performance.now();
  return Math.max(ROUND_TRIP, Math.min(LOCK_WAIT + ROUND_TRIP, rest / 2));
}

/** The calls that still wait. One whose deadline has passed is rejected and never sent: its caller has been answered. */
export function open(calls: Pending[], margin = 0): Pending[] {
  const now = performance.now() + margin;
  if (calls.every(({ settled, deadline }) => !settled && deadline > now)) return calls;
  return calls.filter((pending) => {
    if (pending.settled) return false;
    if (pending.deadline > now) return true;
    pending.expire();
    return false;
  });
}

/** The keys that are kept apart, since their rows are locked. */
export interface Keys {
  has(id: string): boolean;
  /** Keeps the calls on these keys apart; returns the others. */
  hold(calls: readonly Pending[], ids: ReadonlySet<string>, cause: unknown): Pending[];
}

export class Carrier {
  readonly #options: QueueOptions;
  readonly #sender: Sender;
  readonly #keys: Keys;

  constructor(options: QueueOptions, keys: Keys) {
    this.#options = options;
    this.#sender = new Sender(options.ask, options.timeout, options.statements);
    this.#keys = keys;
  }

  /** Sends, and answers every call; returns those to send again in a program. */
  async settle(kind: Kind, some: readonly Pending[], lock?: number): Promise<readonly Pending[]> {
    const { timeout, transaction, schema } = this.#options;
    const latest = performance.now() + timeout;
    // A call without a deadline has one from here on.
    if (!transaction) for (const pending of some) pending.deadline = Math.min(pending.deadline, latest);
    let calls: Pending[] = [...some];
    let late = false;
    let tableLocked = false;
    for (let tries = 1; ; tries++) {
      const strict = tableLocked || lock !== undefined;
      calls = open(calls, strict ? marginOf(calls) : 0);
      if (calls.length === 0) return [];
      let first = Number.POSITIVE_INFINITY;
      let last = 0;
      for (const { deadline } of calls) {
        if (deadline < first) first = deadline;
        if (deadline > last) last = deadline;
      }
      const now = performance.now();
      const bounds = strict
        ? // It may wait for long: it ends in time for the first of its calls.
          { lock: Math.min(lock ?? timeout, first - now - ROUND_TRIP), undo: first - ROUND_TRIP, last }
        : {
            lock: Math.min((last - now) * LOCK_PART, LOCK_WAIT),
            // Under load some call is always close to its deadline: it undoes the statement of the others once at most.
            undo: Math.max(late ? last : first, now + LOCK_WAIT),
            last,
          };
      try {
        const turn = this.#turn(kind, calls);
        const answer = await this.#sender.send(() => statementOf(schema, turn, transaction ? undefined : bounds), last);
        return turn.settle(answer);
      } catch (error) {
        const fault = faultOf(error);
        if (fault.undone === undefined || transaction) return this.#failed(kind, calls, fault, error, lock);
        if (fault.undone === "late") {
          late = true;
        } else if (fault.undone === "conflict") {
          const what = `concurrent transactions undid it until its deadline (${fault.code})`;
          for (const pending of calls) pending.failAtDeadline(what, error);
          if (!(await pause(tries, last))) for (const pending of calls) pending.fail(what, error, "key");
        } else if (lock !== undefined) {
          const ids = calls.flatMap(({ about }) => about.filter((id) => this.#keys.has(id)));
          this.#keys.hold(calls, new Set(ids), error);
          return [];
        } else {
          const locked = await this.locked(calls);
          tableLocked = locked === undefined;
          if (locked !== undefined) calls = this.#keys.hold(calls, locked, error);
        }
      }
    }
  }

  /** What a statement that failed for good leaves: an error for each of its calls. */
  async #failed(
    kind: Kind,
    calls: readonly Pending[],
    fault: Fault,
    error: unknown,
    lock?: number,
  ): Promise<Pending[]> {
    const { message, code, undone } = fault;
    if (calls.length > 1 && !this.#options.transaction && code?.startsWith("22")) {
      // A number that PostgreSQL cannot compute with, in one of them: nothing was written. Each is sent on its own.
      const again: Pending[] = [];
      for (const pending of calls) again.push(...(await this.settle(kind, [pending], lock)));
      return again;
    }
    const cause = error instanceof NotSent ? undefined : error;
    const scope = undone !== undefined || code?.startsWith("22") ? "key" : "store";
    for (const pending of calls) pending.fail(message, cause, scope);
    return [];
  }

  #turn(kind: Kind, some: readonly Pending[]): Turn {
    const { schema } = this.#options;
    if (kind === "read") return readMany(schema, some);
    if (kind === "reset") return forget(schema, some);
    if (kind === "run") return runMany(schema, some);
    return some.length === 1 ? takeOne(schema, some[0] as Pending) : takeMany(schema, some);
  }

  /** Identities of which another transaction has locked a row; `undefined` where the table itself seems to be locked. */
  async locked(calls: readonly Pending[]): Promise<Set<string> | undefined> {
    const { schema } = this.#options;
    const last = Math.max(...calls.map(({ deadline }) => deadline));
    const rows = [...new Map(calls.flatMap((pending) => pending.rows()))];
    const turn = { call: `${schema}.locked($1::text::bytea[])`, values: [byteasOf(rows.map(([row]) => row))] };
    try {
      const answer = String(await this.#sender.send(() => statementOf(schema, turn), last));
      const places = answer === "" ? [] : answer.split(",");
      return new Set(places.map((place) => rows[Number(place) - 1]?.[1] ?? ""));
    } catch (error) {
      return faultOf(error).undone === "conflict" ? new Set() : undefined;
    }
  }
}
