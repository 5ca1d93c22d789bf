/** A table in memory, for atomic steps by compare-and-swap, that counts what it is sent. */
import { decodeText, encodeText } from "../src/limit/codec.ts";
import { Limit } from "../src/limit/limit.ts";
import type { Call } from "../src/stores/contract.ts";
import type { Change, Entry, Swappable } from "../src/stores/swap/database.ts";
import { swapStore } from "../src/stores/swap.ts";

type Found = Entry<string | undefined>;

/** Rows of text, which are their own versions. */
export function table(options: Partial<Swappable<string | undefined>> = {}) {
  const rows = new Map<string, string>();
  const reads: string[][] = [];
  const changes: (readonly Change<string | undefined>[])[] = [];
  const database: Swappable<string | undefined> = {
    name: "rows",
    async read(ids) {
      reads.push([...ids]);
      return ids.map((id): Found => ({ value: rows.get(id), version: rows.get(id) }));
    },
    decode: (value) => decodeText(value as string),
    async swap(some) {
      changes.push(some);
      if (some.some(({ id, seen }) => seen !== undefined && seen.version !== rows.get(id))) return false;
      for (const { id, write } of some) {
        if (write?.state === null) rows.delete(id);
        else if (write !== undefined) rows.set(id, encodeText(write.state));
      }
      return true;
    },
    ...options,
  };
  return { rows, reads, changes, database, store: swapStore(database) };
}

export const bucket = { kind: "token bucket", rate: 10, period: 1000 } as const;
export const limit = new Limit("one", bucket);
export const other = new Limit("other", bucket);
export const parts = new Limit("parts", { ...bucket, shards: 2 });
export const call = (op: Call["op"] = "take", key = "k", count = 1): Call => ({
  op,
  limit,
  key,
  count,
  reserve: false,
});
export const NOW = 5000;
