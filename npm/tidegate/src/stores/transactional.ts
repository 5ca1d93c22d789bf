/** The base of stores whose database has transactions: the steps of steps.ts, in one transaction. */
import { MAX_NOW_MS } from "../engine/generated/bounds.ts";
import { numberError } from "../limit/config.ts";
import { ANY, check, checkTable, functionThat, textThat } from "../limit/checks.ts";
import { shardingBy } from "../limit/shards.ts";
import type { AsyncStore, Deadline } from "./contract.ts";
import { messageOf } from "../limit/errors.ts";
import { monotonicNow, overdueTimers } from "../limit/monotonic.ts";
import { idsOf, KeyError, wraps } from "./failure.ts";
import { type Run, Steps, storeOf, type Transaction } from "./steps.ts";
import { KeyedQueue, queueOf } from "./keyed-queue.ts";

/** What {@link transactional} needs. */
export interface TransactionalOptions {
  /** A short name, for errors. */
  name: string;
  /**
   * Runs `body` in one transaction, atomically with respect to every other process. After a conflict it may run `body` again, if
   * it has rolled the earlier run back. Within this process the store runs the calls on one limit and key one after another,
   * so a transaction that several calls share is safe.
   */
  transaction<T>(body: (transaction: Transaction) => Promise<T>): Promise<T>;
  /**
   * The handle of a host's transaction that every `body` runs in (Prisma's or Drizzle's `tx`, Convex's `ctx.db`), if
   * `transaction` begins none of its own. The stores with the same handle run their calls on one limit and key one after
   * another. Such calls have no deadline and no `onStoreError`: an error rejects, and rolls the transaction back.
   */
  within?: object | undefined;
  /** The clock, epoch ms: the database's own if it has one. Default `Date.now`. */
  now?: (() => number) | undefined;
  /**
   * Picks two of a limit's shards: a number from 0 to below 1. Default `Math.random`; a seeded one makes a run
   * reproducible.
   */
  random?: (() => number) | undefined;
}

const NAME = textThat("a short name, for errors");
const TRANSACTION = functionThat("a function that runs its argument in a transaction");
const UNRETURNED = "`transaction` must call its argument, and return what that returns";
const OPTIONS = {
  name: ANY,
  transaction: ANY,
  within: {
    expects: "the handle of a transaction, an object",
    accepts: (handle: unknown) => Object(handle) === handle,
  },
  now: functionThat("a function that returns ms"),
  random: functionThat("a function that returns a number below 1"),
};

/**
 * A store on any database with transactions: the algebra runs in this process, between `get` and `set`.
 *
 * ```ts
 * const store = transactional({ name: "mine", transaction: (body) => db.transaction((tx) => body(statesIn(tx))) });
 * // Inside your own transaction:
 * const inside = transactional({ name: "mine", transaction: (body) => body(statesIn(tx)), within: tx });
 * ```
 *
 * Calls of this process on one limit and key run one after another. A call whose deadline passes while it waits is not
 * sent, and one that gets its transaction later takes nothing. A call that runs past its deadline does not block the next one.
 * Throws an `InputError` if an option is wrong.
 */
export function transactional(options: TransactionalOptions): AsyncStore {
  checkTable("transactional", options, OPTIONS, "an object with name and transaction");
  const { name, transaction, within, now: clock = Date.now, random = () => Math.random() } = options;
  check("name", name, NAME);
  check("transaction", transaction, TRANSACTION);

  const sharding = shardingBy(random);
  const queue = within === undefined ? new KeyedQueue() : queueOf(within);
  const run: Run = (targets, now, deadline, body) => {
    let answer: ReturnType<typeof body> | undefined;
    /** Why the call is late once its transaction has begun. */
    let why: NonNullable<Deadline>["why"];
    const step = (states: Transaction) => {
      if (deadline !== undefined) deadline.why = why;
      answer = inTime(deadline, () => body(new Steps(states, name, now ?? read(clock), sharding)));
      // Unhandled, its error would end the process: `transaction` may have failed before.
      answer.catch(() => {});
      return answer;
    };
    const decided = async () => {
      if (deadline !== undefined) {
        why = deadline.why;
        deadline.why ??= NOT_BEGUN;
      }
      try {
        const returned = await transaction(step);
        // Without its `return` every decision would be `undefined`.
        if (answer === undefined || returned !== (await answer)) throw new TypeError(UNRETURNED);
        return returned;
      } catch (error) {
        // Within a host's transaction nothing is decided without the database.
        throw within === undefined ? ofOneKey(error) : error;
      }
    };
    return queue.run(idsOf(targets), decided, deadline);
  };
  return { ...storeOf(name, run), ...(within === undefined ? {} : { inTransaction: true }) };
}

const LATE: Error = /* @__PURE__ */ new KeyError(
  "`transaction` ran its argument after the deadline; nothing was taken",
  false,
);
const NOT_BEGUN: Error = /* @__PURE__ */ new Error(
  "`transaction` did not run its argument before the deadline: no connection was free, or the database did not answer",
);

/**
 * What `body` returns. Rejects without running it after the deadline: the transaction has waited for a connection, or is
 * repeated after a conflict, and its caller has been answered.
 */
async function inTime<T>(deadline: Deadline, body: () => Promise<T>): Promise<T> {
  if (deadline !== undefined) {
    await overdueTimers(deadline.at);
    if (monotonicNow() > deadline.at) throw LATE;
  }
  return body();
}

/**
 * Codes of PostgreSQL, MySQL, Prisma and SQLite after a conflict: a serialization failure, a deadlock, a lock wait, a row that
 * has changed. The database works, and has rolled the transaction back.
 */
const CONFLICT = /^(40001|40P01|55P03|1205|1213|1020|P2034|SQLITE_BUSY(_SNAPSHOT)?|ERR_SQLITE_ERROR (5|517))$/;
/** Codes of SQL (class 22), MySQL and Prisma for a value that a column does not hold, such as a key with NUL in `text`. */
const UNFIT = /^(22\w{3}|1366|1406|P2000)$/;
/** Whether an error, or one that an ORM's error is around, has such a code. */
const has = (codes: RegExp, error: unknown): boolean =>
  wraps(error, ({ code, errno, originalCode, errcode }) =>
    // Prisma's adapter of MariaDB has MySQL's numbers as text; the code of node:sqlite is one for all errors.
    [code, errno, originalCode, `${code} ${errcode}`].some((each) => codes.test(String(each))),
  );

/** What the database refused of one key. Calls on others go on. */
class Refused extends KeyError {
  constructor(
    override readonly cause: unknown,
    remedy: string,
  ) {
    super(`${messageOf(cause)}; ${remedy}`, true);
  }
}

function ofOneKey(error: unknown): unknown {
  if (has(CONFLICT, error)) return new Refused(error, "after a conflict `transaction` may run its argument again");
  if (has(UNFIT, error))
    return new Refused(error, "the column of the identity must hold every key, as one of bytes does");
  return error;
}

/** A clock that is wrong is a failure of the store, not a mistake of the call. */
function read(clock: () => unknown): number {
  const now = clock();
  if (typeof now === "number" && now >= 0 && now <= MAX_NOW_MS) return now;
  throw new TypeError(numberError("now", now).message);
}
