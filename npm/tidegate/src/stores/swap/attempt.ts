/** One attempt of a step: reads what its calls need, decides on them, and writes that if nothing has changed meanwhile. */
import { messageOf, readable } from "../../limit/errors.ts";
import { overdueTimers } from "../../limit/monotonic.ts";
import { KeyError, wraps } from "../failure.ts";
import { SLACK, Steps, type Transaction } from "../steps.ts";
import type { Entry, Swappable, Write } from "./database.ts";
import type { RoundTripsByKind } from "./round-trips.ts";
import { firstDeadline, type Until, type Waiting } from "./waiting.ts";

/** How a call ends once its step is written. */
type End = () => void;

/**
 * What an attempt came to: how the calls that it decided on end, why nothing was written, though another may succeed, or why
 * nothing could be read.
 */
export type Outcome = { readonly ends: readonly End[] } | { readonly refused: unknown } | { readonly unread: unknown };

const LATE = "a deadline passed before the write, which was not sent";
const REFUSED = "the write was refused: others were faster, its deadline passed, or the server has no room";

/** The server closed the connection, perhaps as it was idle; a pool may pass it on before it notices. */
const CLOSED: readonly unknown[] = ["ECONNRESET", "EPIPE"];

/** Rejects if a write failed, which may have been carried out. */
export async function attempt<Version>(
  database: Swappable<Version>,
  calls: readonly Waiting[],
  until: Until,
  trips: RoundTripsByKind,
): Promise<Outcome> {
  const { name, sharding } = database;
  const seen = new Map<string, Entry<Version>>();
  const writes = new Map<string, Write>();
  /** What the calls that write have read. */
  const compared = new Set<string>();
  /** The identities of the call that is decided on. */
  let current: readonly string[] = [];
  let reads = 0;
  let isSent = false;
  /** The error of the read that failed. */
  let lost: { readonly error: unknown } | undefined;

  /** Sets why the calls are late if the database does not answer, if nothing else is the reason. */
  const explain = (why: Error | undefined): void => {
    for (const { deadline } of calls) deadline.why ??= why;
  };

  async function load(ids: readonly string[]): Promise<void> {
    reads += sharding === undefined ? 1 : ids.length;
    explain(database.unanswered?.read);
    const sent = performance.now();
    const read = async (): Promise<readonly Entry<Version>[]> => database.read(ids, until.at);
    try {
      const entries = await read().catch((error: unknown) => {
        const isClosed = wraps(error, ({ code }) => CLOSED.includes(code));
        if (!isClosed && database.readsAgain?.(error) !== true) throw error;
        // It has changed nothing.
        return read();
      });
      trips.read.add(sent);
      for (const [i, id] of ids.entries()) seen.set(id, entries[i] as Entry<Version>);
    } catch (error) {
      lost = { error };
      throw error;
    }
  }

  function put(id: string, write: Write): void {
    writes.set(id, write);
    for (const each of current) compared.add(each);
  }

  const states: Transaction = {
    async get(id) {
      if (!seen.has(id)) await load([id]);
      const written = writes.get(id);
      if (written !== undefined) return written.state;
      const { value } = seen.get(id) as Entry<Version>;
      return value === undefined ? null : database.decode(value);
    },
    set: (id, state, fullAt, now) => put(id, { state, dropIn: Math.max(fullAt - now, 0) + SLACK }),
    delete: (id) => put(id, { state: null, dropIn: SLACK }),
  };

  /**
   * Decides on the calls in order, and returns how they end once this is written. If the process is slow, it decides on
   * the first calls alone, so that the rest of their time is left for the write.
   */
  async function decide(): Promise<End[]> {
    const known = calls.flatMap(({ ids, targets }) =>
      // A limit with shards picks the ones that it reads.
      ids.filter((_, i) => sharding === undefined || targets[i]?.limit.policy.shards === 1),
    );
    const ids = [...new Set(known)];
    if (ids.length > 1) await load(ids);
    const ends: End[] = [];
    /** When it stops deciding: half of the time that is left after the first call, whose step reads. */
    let enough = Infinity;
    for (const { ids, body, now = Date.now(), resolve, reject } of calls) {
      if (performance.now() > enough) break;
      current = ids;
      try {
        const result = await body(new Steps(states, name, now, sharding));
        ends.push(() => resolve(result));
      } catch (error) {
        // A failure of the database is every call's; any other is of this call alone.
        if (lost !== undefined) throw lost.error;
        ends.push(() => reject(error));
      }
      if (ends.length === 1) enough = (performance.now() + firstDeadline(calls, until)) / 2;
    }
    return ends;
  }

  /** Writes what was decided. */
  async function write(ends: readonly End[]): Promise<Outcome> {
    // One entry that was only read is what it was; several, with shards, must have been so at one time.
    if (writes.size === 0 && reads < 2) return { ends };
    explain(database.unanswered?.write);
    await overdueTimers(firstDeadline(calls, until));
    const first = firstDeadline(calls, until);
    // That the read was answered shows nothing about writes: they may wait for a lock, and stop this process meanwhile.
    if (performance.now() >= first) return { refused: new KeyError(LATE, false) };
    const unread = [...writes.keys()].filter((id) => !seen.has(id));
    if (database.comparesAll === true && unread.length > 0) await load(unread);
    // Without shards, what a call that is denied has read was so at one time.
    const relevant = [...seen.keys()].filter((id) => sharding !== undefined || compared.has(id));
    const ids = new Set([...relevant, ...writes.keys()]);
    const changes = [...ids].map((id) => ({ id, seen: seen.get(id), write: writes.get(id) }));
    const sent = performance.now();
    isSent = true;
    const isWritten = await database.swap(changes, { until: until.at, first });
    trips.write.add(sent);
    return isWritten ? { ends } : { refused: new KeyError(REFUSED, true) };
  }

  try {
    return await write(await decide());
  } catch (thrown) {
    const error = readable(thrown);
    const busy = database.busy?.(error);
    if (busy === undefined && isSent) throw error;
    if (busy === undefined) return { unread: error };
    return {
      refused: busy === "entries" && !(error instanceof KeyError) ? new KeyError(messageOf(error), true) : error,
    };
  }
}
