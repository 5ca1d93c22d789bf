/** A transaction on Deno KV: what was read must still be there when what is written is committed. */
import { decode, encode } from "../../limit/codec.ts";
import type { State } from "../../limit/decision.ts";
import { wellFormed } from "../record.ts";
import type { Transaction } from "../transactional.ts";
import type { Kv, KvKey } from "./kv.ts";

/** How often a step is tried: against other processes it loses some, and a locked file may take a while. */
const ATTEMPTS = 60;
/** ms of the longest wait between two attempts. */
const WAIT_MOST = 200;
/** ms that a full state is kept on: by then it is full by the clocks of other processes too. */
const SLACK = 60_000;
/** Entries that would expire later than this (ten years) are kept for good. */
const EXPIRY_MOST = 315_360_000_000;

/** Runs it until nobody was faster; `now` is the time that the states are of. */
export async function transaction<T>(
  kv: Kv,
  prefix: KvKey,
  now: number,
  body: (tx: Transaction) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      const done = await once(kv, prefix, now, body);
      if (done !== undefined) return done.result;
      if (attempt === ATTEMPTS) throw new Error(`others were faster ${ATTEMPTS} times in a row`);
    } catch (error) {
      // SQLite says so before it has changed anything.
      if (!isLocked(error) || attempt === ATTEMPTS) throw error;
    }
    await pause(attempt);
  }
}

const isLocked = (error: unknown): boolean =>
  error instanceof Error && /database is (locked|busy)/i.test(error.message);

/** Longer each time and never the same, so that those that met once do not meet again. */
const pause = (attempt: number): Promise<void> => {
  const most = Math.min(WAIT_MOST, 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, Math.random() * most));
};

async function once<T>(
  kv: Kv,
  prefix: KvKey,
  now: number,
  body: (tx: Transaction) => Promise<T>,
): Promise<{ result: T } | undefined> {
  const seen = new Map<string, { key: KvKey; versionstamp: string | null; state: State | null }>();
  const keyOf = (id: string): KvKey => [...prefix, wellFormed(id)];
  const atomic = kv.atomic();
  let writes = 0;
  const result = await body({
    async get(id) {
      const before = seen.get(id);
      if (before !== undefined) return before.state;
      const key = keyOf(id);
      const { value, versionstamp } = await kv.get(key);
      const state = versionstamp === null ? null : decode(value as Uint8Array);
      seen.set(id, { key, versionstamp, state });
      return state;
    },
    set(id, state, fullAt) {
      writes++;
      const expireIn = Math.max(fullAt - now, 0) + SLACK;
      atomic.set(keyOf(id), encode(state), expireIn > EXPIRY_MOST ? {} : { expireIn });
    },
    delete(id) {
      writes++;
      atomic.delete(keyOf(id));
    },
  });
  // A single entry that was only read is what it was; several must have been so at one time.
  if (writes === 0 && seen.size < 2) return { result };
  for (const { key, versionstamp } of seen.values()) atomic.check({ key, versionstamp });
  return (await atomic.commit()).ok ? { result } : undefined;
}
