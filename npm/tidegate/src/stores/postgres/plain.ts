/** The calls that most are: takes on a row each, and looks at rows. */
import type { Limit } from "../../limit/limit.ts";
import { listOf, partsOf, stateOf } from "./answer.ts";
import type { Statement } from "./client.ts";
import { byteaOf, byteasOf, inOrder } from "./identity.ts";
import type { Pending } from "./pending.ts";

/** A call of one of the functions in SQL, and how its answer settles the pending calls: returns those to send again. */
export interface Turn {
  readonly call: string;
  readonly values: Statement["values"];
  settle(answer: unknown): readonly Pending[];
}

const number = (x: number | undefined): string | null => (x === undefined ? null : String(x));
const NOTHING = { op: "take", count: 0, reserve: false } as const;

const callOf = (pending: Pending) => {
  if (pending.asked.kind !== "one") throw new TypeError("a plain call is one call");
  return pending.asked.call;
};

/** The window grid's offset, or `null` for a token bucket. */
export const startOf = (limit: Limit, key: string | undefined): number | null =>
  limit.policy.kind === "token bucket" ? null : limit.start(key);

/** Answers a take that found this stored: denied, or where it would be granted, to be asked again. */
function denied(pending: Pending, value: string | undefined, ts: string | undefined, now: number): boolean {
  const call = callOf(pending);
  const before = stateOf(value, ts);
  if (before === "corrupt" || before === null) {
    pending.corrupt();
    return true;
  }
  const { decision } = call.limit.evaluate(before, call, now, { start: call.limit.start(call.key) });
  if (decision.ok) return false;
  pending.resolve(decision);
  return true;
}

/** Answers a take that wrote this. */
function granted(pending: Pending, value: string | undefined, ts: string | undefined, now: number): void {
  const call = callOf(pending);
  const after = stateOf(value, ts);
  if (after === "corrupt" || after === null) pending.corrupt();
  else pending.resolve(call.limit.evaluate(after, NOTHING, now, { start: call.limit.start(call.key) }).decision);
}

/** Answers a take that found nothing stored. */
function fresh(pending: Pending, now: number): void {
  const call = callOf(pending);
  pending.resolve(call.limit.evaluate(null, call, now, { start: call.limit.start(call.key) }).decision);
}

/** One take on one row. */
export function takeOne(schema: string, pending: Pending): Turn {
  const { limit, key, count } = callOf(pending);
  const { rate, period, capacity } = limit.policy;
  const values = [
    byteaOf(limit.identity(key)),
    String(rate),
    String(period),
    String(capacity),
    number(startOf(limit, key) ?? undefined),
    String(count),
    number(pending.now),
  ];
  const call = `${schema}.take_one($1::text::bytea, $2::text::float8, $3::text::float8, $4::text::float8, $5::text::float8, $6::text::float8, $7::text::float8)`;
  return {
    call,
    values,
    settle(answer) {
      const [at, what, value, ts] = partsOf(answer, ",", 2);
      const now = Number(at);
      if (what === "f") fresh(pending, now);
      else if (what === "g") granted(pending, value, ts, now);
      else if (!denied(pending, value, ts, now)) return [pending];
      return [];
    },
  };
}

/** Takes on rows of which no two are the same. */
export function takeMany(schema: string, some: readonly Pending[]): Turn {
  const all = some.map((pending) => ({ pending, id: pending.about[0] as string }));
  all.sort((a, b) => inOrder(a.id, b.id));
  const rules = new Map<string, number>();
  const columns: string[][] = [[], [], [], []];
  let places = "";
  let starts = "";
  let windows = false;
  for (const { pending } of all) {
    const { limit, key, count } = callOf(pending);
    const { rate, period, capacity } = limit.policy;
    const numbers = [rate, period, capacity, count];
    const rule = numbers.join(",");
    let place = rules.get(rule);
    if (place === undefined) {
      place = rules.size + 1;
      rules.set(rule, place);
      for (const [i, x] of numbers.entries()) (columns[i] as string[]).push(String(x));
    }
    const start = startOf(limit, key);
    windows ||= start !== null;
    const comma = places === "" ? "" : ",";
    places += comma + place;
    starts += comma + (start === null ? "NULL" : start);
  }
  const values = [
    byteasOf(all.map(({ id }) => id)),
    `{${places}}`,
    windows ? `{${starts}}` : null,
    ...columns.map((column) => `{${column.join(",")}}`),
    number(all[0]?.pending.now),
  ];
  const call = `${schema}.take_many($1::text::bytea[], $2::text::int[], $3::text::float8[], $4::text::float8[], $5::text::float8[], $6::text::float8[], $7::text::float8[], $8::text::float8)`;
  return {
    call,
    values,
    settle(answer) {
      const parts = partsOf(answer, ";", 8);
      const [written, values, ts, inserted, kept, keptValues, keptTs] = parts.slice(1).map(listOf) as [
        string[],
        string[],
        string[],
        string[],
        string[],
        string[],
        string[],
      ];
      const at = parts[0] as string;
      const now = Number(at);
      const open = new Set(some);
      const at1 = (place: string): Pending => {
        const { pending } = all[Number(place) - 1] as { pending: Pending };
        open.delete(pending);
        return pending;
      };
      for (const [i, place] of written.entries())
        granted(at1(place), values[i], ts[i] === "" ? at : (ts[i] ?? at), now);
      for (const place of inserted) fresh(at1(place), now);
      for (const [i, place] of kept.entries()) {
        const pending = at1(place);
        if (!denied(pending, keptValues[i], keptTs[i], now)) open.add(pending);
      }
      return [...open];
    },
  };
}

/** Looks at rows: checks, and the two numbers, of all shards together. */
export function readMany(schema: string, some: readonly Pending[]): Turn {
  const ids: string[] = [];
  const firsts: number[] = [];
  for (const { asked } of some) {
    firsts.push(ids.length);
    const { limit, key } = asked.kind === "one" ? asked.call : (asked as { limit: Limit; key: string | undefined });
    for (let shard = 0; shard < limit.policy.shards; shard++) ids.push(limit.identity(key, shard));
  }
  const call = `${schema}.read_many($1::text::bytea[], $2::text::float8)`;
  return {
    call,
    values: [byteasOf(ids), number(some[0]?.now)],
    settle(answer) {
      const [at, values = "", ts = ""] = partsOf(answer, ";", 3);
      const now = Number(at);
      const [v, t] = [values.split(","), ts.split(",")];
      const states = ids.map((_, i) => stateOf(v[i], t[i]));
      for (const [i, pending] of some.entries()) {
        const first = firsts[i] as number;
        const { asked } = pending;
        if (asked.kind === "one") {
          const before = states[first] as (typeof states)[number];
          const { limit, key } = asked.call;
          if (before === "corrupt") pending.corrupt();
          else pending.resolve(limit.evaluate(before, asked.call, now, { start: limit.start(key) }).decision);
          continue;
        }
        const { limit, key } = asked as { limit: Limit; key: string | undefined };
        const { shards } = limit.policy;
        const own = states.slice(first, first + shards);
        const sound = own.filter((state) => state !== "corrupt");
        if (sound.length < own.length) pending.corrupt(limit.identity(key, own.indexOf("corrupt")));
        else if (shards > 1) pending.resolve(limit.sum(sound, now, limit.start(key)));
        else pending.resolve(limit.project(sound[0] ?? null, now, limit.start(key)));
      }
      return [];
    },
  };
}

/** Forgets limits, every shard of them. */
export function forget(schema: string, some: readonly Pending[]): Turn {
  const ids = some.flatMap(({ asked }) => {
    const { limit, key } = asked as { limit: Limit; key: string | undefined };
    return Array.from({ length: limit.policy.shards }, (_, shard) => limit.identity(key, shard));
  });
  ids.sort(inOrder);
  const call = `${schema}.forget($1::text::bytea[])`;
  return {
    call,
    values: [byteasOf(ids)],
    settle(answer) {
      partsOf(answer, ",", 1);
      for (const pending of some) pending.resolve(undefined);
      return [];
    },
  };
}
