/** Removing rows that say nothing any more. */
import { numberError } from "../../limit/config.ts";
import { MAX_NOW_MS } from "../../engine/generated/bounds.ts";
import type { Limit } from "../../limit/limit.ts";
import { type Ask, statement } from "./client.ts";
import { checkLimit, checkOptions, whole } from "./inputs.ts";

/** Settings of {@link PostgresStore.purge}. */
export interface PurgeOptions {
  /** Rows looked at in one statement: 1 to 1,000,000; default 1000. */
  slice?: number | undefined;
  /** The clock, epoch ms; default the database's. */
  now?: number | undefined;
}

/** See {@link PostgresStore.purge}. */
export async function purge(ask: Ask, schema: string, limit: Limit, options: PurgeOptions): Promise<number> {
  const { slice: given, now } = checkOptions(options) as PurgeOptions;
  const slice = whole("slice", given, 1_000_000, 1000);
  if (now !== undefined && !(typeof now === "number" && now >= 0 && now <= MAX_NOW_MS)) throw numberError("now", now);
  const { kind, rate, period, capacity, shards } = checkLimit(limit).policy;
  const text = `SELECT removed || ',' || coalesce(encode(next, 'hex'), '') AS answer FROM ${schema}.purge($1::text, $2::text::float8, $3::text::float8, $4::text::float8, $5::boolean, $6::text::int, $7::text::bytea, $8::text::float8)`;
  const policy = [String(rate / shards), String(period), String(capacity / shards), kind === "fixed window"];
  let removed = 0;
  for (let after = ""; ; ) {
    const values = [limit.name, ...policy, String(slice), `\\x${after}`, now === undefined ? null : String(now)];
    const answer = await ask(() => statement(text, values), 2 ** 31 - 1).answer;
    const [gone, next] = String(answer).split(",");
    removed += Number(gone);
    if (next === undefined || next === "") return removed;
    after = next;
  }
}
