/** A store in a table of an SQL database that has no functions of ours: what SQLite and MySQL share. */
import { decodeText, encodeText, NotAState } from "../limit/codec.ts";
import { checkTable } from "../limit/checks.ts";
import { InputError, messageOf, showClient, withoutPassword } from "../limit/errors.ts";
import { within } from "../limit/monotonic.ts";
import type { AsyncStore } from "./contract.ts";
import { connectedBy } from "./connecting.ts";
import { SLACK } from "./steps.ts";
import type { Busy, Entry, Swappable } from "./swap/database.ts";
import { swapStore } from "./swap.ts";

/** Settings of a store in a table. */
export interface TableOptions {
  /** The table's name: 1 to 64 characters of `A-Z a-z 0-9 _`; default `"tidegate"`. Stores with the same one share their states. */
  table?: string | undefined;
}

/** A row that a step has read. */
export interface Row {
  readonly id: string;
  /** The state that was read, as text; `null` if there was none. */
  readonly before: string | null;
  /** What to store; `null` for a reset, whose row the sweep deletes later. `before` if the step does not write the row. */
  readonly state: string | null;
  readonly written: boolean;
  /** Ms until the row may be deleted. */
  readonly dropIn: number;
}

/** The statements of a store on its table. */
export interface Statements extends Pick<Swappable<unknown>, "unanswered" | "trips"> {
  create(): Promise<unknown>;
  /** The states under these identities, in their order; `null` if there is none. */
  read(ids: readonly string[]): Promise<readonly unknown[]>;
  /**
   * Writes all rows if every one still has its `before`, in one atomic step; otherwise `false`. A server writes nothing
   * from `first` on, the first deadline of the step's calls (`performance.now()`, ms).
   */
  write(rows: readonly Row[], first: number): Promise<boolean>;
  /** Deletes rows that may be deleted, `most` at most. */
  sweep(most: number): Promise<unknown>;
  /** Whether the table does not exist. */
  isMissing(error: unknown): boolean;
  /** Whether the table has other columns. */
  isForeign(error: unknown): boolean;
  /** What is busy, if nothing was done and another attempt may succeed. */
  busy(error: unknown): Busy | undefined;
  /** Whether a read that failed with this is sent again, once. */
  readsAgain(error: unknown): boolean;
}

/** The error if a store got something else instead of a client. */
export function notAClient(rule: string, client: unknown): InputError {
  const { $client } = Object(client) as { $client?: unknown };
  const got = $client === undefined ? showClient(client) : "a database of Drizzle; pass its `$client`";
  return new InputError("client", rule, client, got);
}

const OPTIONS = {
  table: {
    expects: "1 to 64 characters of A-Z a-z 0-9 _",
    accepts: (name: unknown) => typeof name === "string" && /^\w{1,64}$/.test(name),
  },
};
/** What to do about another program's table. */
export const OWN_TABLE = 'give the store one of its own, such as { table: "rate_limits" }';
/** One in this many writes also deletes full states, at most this many. */
const SWEEP_EVERY = 64;
const SWEEP_MOST = 256;
/** Ms after which a sweep that has not ended is given up: longer than MySQL waits for a lock. A Worker's may never end. */
const SWEEP_GIVEN_UP = 60_000;

/** A store in the table that `options` name; `on` gets that name, and one for an index, quoted. Throws an `InputError` if an option is wrong. */
export function tableStore(
  name: string,
  options: TableOptions,
  on: (table: string, index: string) => Statements,
): AsyncStore {
  checkTable(name, options, OPTIONS);
  const { table = "tidegate" } = options;
  // Quoted, so that a reserved word is a name too.
  const statements = on(`\`${table}\``, `\`${table}_drop_at\``);
  let writes = 0;
  /** Until when no sweep begins, as one is under way or has failed (`performance.now()`, ms). */
  let sweepAfter = 0;

  function explained(error: unknown): unknown {
    if (!statements.isForeign(error)) return withoutPassword(error);
    return new Error(`the table ${table} is not a store's (${messageOf(error)}): ${OWN_TABLE}`, { cause: error });
  }

  /**
   * Deletes full states, one sweep at a time: it waits for a row that another transaction has locked, and its connection
   * with it. It is waited for `most` ms.
   */
  async function sweep(most: number): Promise<void> {
    const now = performance.now();
    if (now < sweepAfter) return;
    sweepAfter = now + SWEEP_GIVEN_UP;
    const swept = statements.sweep(SWEEP_MOST).then(() => {
      sweepAfter = 0;
    });
    await within(most, swept, () => undefined);
  }

  /** Creates the table if there is none. */
  async function read(ids: readonly string[]): Promise<Entry<string | null>[]> {
    const states = await statements.read(ids).catch(async (error: unknown) => {
      if (!statements.isMissing(error)) throw explained(error);
      await statements.create();
      return statements.read(ids);
    });
    return states.map((state) => ({ value: state ?? undefined, version: (state as string | null) ?? null }));
  }

  const store = swapStore<string | null>({
    name,
    read,
    decode(value) {
      if (typeof value !== "string") throw new NotAState(`what is stored must be text; got ${typeof value}`);
      return decodeText(value);
    },
    comparesAll: true,
    async swap(changes, { first }) {
      // Before the write, so that a failure here is one of a step that took nothing.
      if (++writes % SWEEP_EVERY === 0) await sweep((first - performance.now()) / 2);
      const rows = changes.map(({ id, seen, write }): Row => {
        const before = (seen as Entry<string | null>).version;
        if (write === undefined) return { id, before, state: before, written: false, dropIn: SLACK };
        return { id, before, state: write.state && encodeText(write.state), written: true, dropIn: write.dropIn };
      });
      return statements.write(rows, first).catch((error: unknown) => {
        throw explained(error);
      });
    },
    busy: statements.busy,
    readsAgain: statements.readsAgain,
    trips: statements.trips,
    unanswered: statements.unanswered,
  });
  // Creates the table, too.
  return connectedBy(() => read([""]), store);
}
