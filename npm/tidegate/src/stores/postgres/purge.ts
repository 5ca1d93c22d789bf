/** Removing rows that say nothing any more. */
import { InputError } from "../../errors.ts";
import type { Limit } from "../../limit.ts";
import { type Ask, statement } from "./client.ts";

/** Settings of {@link PostgresStore.purge}. */
export interface PurgeOptions {
  /** Rows looked at in one statement: 1 to 1,000,000; default 1000. */
  slice?: number | undefined;
  /** The clock, epoch ms; default the database's. */
  now?: number | undefined;
}

/** See {@link PostgresStore.purge}. */
export async function purge(ask: Ask, schema: string, limit: Limit, options: PurgeOptions): Promise<number> {
  const { slice = 1000, now } = options;
  if (!Number.isInteger(slice) || slice < 1 || slice > 1_000_000) {
    throw new InputError("slice", "a whole number from 1 to 1000000", slice);
  }
  const { kind, rate, period, capacity, shards } = limit.policy;
  const text = `SELECT removed || ',' || coalesce(encode(next, 'hex'), '') AS answer FROM ${schema}.purge($1::text, $2::text::float8, $3::text::float8, $4::text::float8, $5::boolean, $6::text::int, $7::text::bytea, $8::text::float8)`;
  const policy = [String(rate / shards), String(period), String(capacity / shards), kind === "fixed window"];
  let removed = 0;
  for (let after = ""; ; ) {
    const values = [limit.name, ...policy, String(slice), `\\x${after}`, now === undefined ? null : String(now)];
    const answer = await ask(statement(text, values), 2 ** 31 - 1);
    const [gone, next] = String(answer).split(",");
    removed += Number(gone);
    if (next === undefined || next === "") return removed;
    after = next;
  }
}
