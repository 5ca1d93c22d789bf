/** The statements that carry requests out in SQL, and how the reply of each resolves its requests. */
import { hexOf } from "../../engine/utf8.ts";
import type { Decision, State } from "../../limit/decision.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Call, Key } from "../contract.ts";
import { combined } from "../../limit/combined.ts";
import { type Statement, statement } from "./client.ts";
import type { PendingRequest, RowCall } from "./request.ts";

/** A function of the schema with its arguments, and what to do with the text that it returns: it resolves the requests. */
export interface FunctionCall<T = void> {
  readonly name: string;
  /** The types of the arguments: all are sent as text. */
  readonly types: readonly string[];
  readonly values: Statement["values"];
  read(reply: unknown): T;
}

/** How long a statement may take. */
export interface Bounds {
  /** ms that it waits for a lock. */
  readonly lock: number;
  /** `performance.now()`, ms, after which the server undoes it. */
  readonly undo: number;
}

/**
 * The statement of a function. Within bounds, the server stops waiting for locks, and undoes the statement when it is late.
 * `byProcedure`: in a transaction of its own at READ COMMITTED.
 */
export function statementOf(
  schema: string,
  { name, types, values }: FunctionCall<unknown>,
  bounds?: Bounds,
  byProcedure?: boolean,
): Statement {
  const given = types.map((type, i) => `$${i + 1}::text::${type}`).join(", ");
  const called = `${schema}.${name}(${given})`;
  if (bounds === undefined) return statement(`SELECT ${called} AS answer`, values);
  const [wait, most] = [`$${types.length + 1}::text`, `$${types.length + 2}::text::float8`];
  // CASE fixes the order. The setting ends with the transaction, which is this statement.
  const text = byProcedure
    ? `CALL ${schema}.${name}_committed(${given}, ${wait}, ${most})`
    : `SELECT ${schema}.in_time(CASE WHEN set_config('lock_timeout', ${wait}, true) <> '' THEN ${called} END, ${most}) AS answer`;
  const lock = Math.max(1, Math.round(bounds.lock));
  const rest = Math.max(1, bounds.undo - performance.now());
  return statement(text, [...values, String(lock), String(rest)]);
}

/** What is stored in a row: a state, nothing, or `"corrupt"`. */
type Stored = State | null | "corrupt";

const OPS = { take: 0, check: 1, give: 2, charge: 3, block: 4, reset: 5 } as const;
/** No debt is below this floor: every finite number is above it. */
const NO_FLOOR = -Number.MAX_VALUE;
/** Reads the decision from the state that a take has left. */
const NOTHING = { op: "take", count: 0, reserve: false } as const;

const list = (items: readonly (string | number)[]): string => `{${items.join(",")}}`;
const clockOf = (pending: PendingRequest): string | null => (pending.now === undefined ? null : String(pending.now));

/** The window grid's offset, infinite for the first request, or `null` for a token bucket. */
const startOf = (limit: Limit, key: Key): number | null =>
  limit.policy.kind === "token bucket" ? null : limit.start(key);

function decide({ limit, key }: Call, state: State | null, call: Pick<Call, "op" | "count" | "reserve">, now: number) {
  return limit.evaluate(state, call, now, { start: limit.start(key) });
}

/** A state from its two texts; empty ones are none. */
function stateOf(value: string | undefined, ts: string | undefined): Stored {
  if (value === "" || value === undefined) return null;
  const state = { value: Number(value), ts: Number(ts) };
  return Number.isFinite(state.value) && Number.isFinite(state.ts) && ts !== "" ? state : "corrupt";
}

/** The parts of a reply; throws if it is not one of the schema's functions'. */
function partsOf(reply: unknown, separator: string, least: number): string[] {
  const parts = typeof reply === "string" ? reply.split(separator) : [];
  if (parts.length < least || !(Number(parts[0]) >= 0)) {
    throw new TypeError("the answer is not one of tidegate's functions; is the migration the one of this version?");
  }
  return parts;
}

/** The rows of these requests, in the order of their ids, and how the reply "now;value,...;ts,..." resolves the requests. */
function rowsOf(batch: readonly PendingRequest[]) {
  const ids = [...new Set(batch.flatMap((pending) => pending.ids))].sort(inOrder);
  const rows = new Map(ids.map((id, i) => [id, i]));
  const read = (reply: unknown): void => {
    const [clock, values = "", ts = ""] = partsOf(reply, ";", 3);
    const [v, t] = [values.split(","), ts.split(",")];
    const states = ids.map((_, i) => stateOf(v[i], t[i]));
    for (const pending of batch) repeat(pending, states, rows, Number(clock));
  };
  return { ids, rows, read };
}

/** The function that carries these requests out, which all read or all write. Only `call_rows` has a procedure. */
export function callOf(requests: readonly PendingRequest[], byProcedure: boolean): FunctionCall {
  const [first] = requests as [PendingRequest];
  if (first.reads) return readRows(requests);
  return requests.length === 1 && first.takes && !byProcedure ? takeRow(first) : callRows(requests);
}

function takeRow(pending: PendingRequest): FunctionCall {
  const call = pending.calls[0] as Call;
  const { rate, period, capacity } = call.limit.policy;
  const start = startOf(call.limit, call.key);
  return {
    name: "take_row",
    types: ["bytea", "float8", "float8", "float8", "float8", "float8", "float8"],
    values: [
      byteaOf(pending.ids[0] as string),
      String(rate),
      String(period),
      String(capacity),
      start === null ? null : String(start),
      String(call.count),
      clockOf(pending),
    ],
    read(reply) {
      const [clock, value, ts, note] = partsOf(reply, ",", 3);
      const state = stateOf(value, ts);
      pending.created = note === "new";
      if (state === "corrupt" || state === null) pending.corrupt();
      else pending.resolve(decide(call, state, note === "denied" ? call : NOTHING, Number(clock)).decision);
    },
  };
}

/** The types of a call's numbers, apart from its row: its operation, rate, period, capacity, floor, start and count. */
const SPEC_TYPES = ["int[]", "float8[]", "float8[]", "float8[]", "float8[]", "float8[]", "float8[]"] as const;

function specOf({ op, limit, key, count, reserve }: RowCall): readonly number[] {
  const { rate, period, capacity, maxReserved } = limit.policy;
  const floor = !reserve ? 0 : maxReserved === undefined ? NO_FLOOR : -maxReserved;
  return [OPS[op], rate, period, capacity, floor, startOf(limit, key) ?? Number.NaN, count];
}

/** Calls on a row. Places count from 1. */
interface Entry {
  readonly row: number;
  readonly spec: number;
  /** How many such calls follow one another. */
  times: number;
  /** At the first of the calls that are all or nothing: how many those are. 0 at the others. */
  readonly together: number;
}

/** The calls of a batch in their order, and their different specs. `rows`: the places of the ids, from 0. */
function entriesOf(batch: readonly PendingRequest[], rows: ReadonlyMap<string, number>) {
  const specs: (readonly number[])[] = [];
  const entries: Entry[] = [];
  const places = new Map<string, number>();
  const placeOf = (spec: readonly number[]): number => {
    const name = spec.join(",");
    const place = places.get(name) ?? specs.push(spec);
    places.set(name, place);
    return place;
  };
  let lastTake: Entry | undefined;
  for (const pending of batch) {
    const { calls } = pending;
    for (const [i, call] of calls.entries()) {
      const row = (rows.get(pending.ids[i] as string) as number) + 1;
      const spec = placeOf(specOf(call));
      const together = i === 0 ? calls.length : 0;
      // Equal takes in a row are one entry.
      if (lastTake?.row === row && lastTake.spec === spec && lastTake.together === together) lastTake.times++;
      else entries.push({ row, spec, times: 1, together });
      lastTake = pending.takes ? entries.at(-1) : undefined;
    }
  }
  return { specs, entries };
}

/** Any calls, in their order. The function returns what the rows stored before, and the core repeats the calls on that. */
function callRows(batch: readonly PendingRequest[]): FunctionCall {
  const { ids, rows, read } = rowsOf(batch);
  const { specs, entries } = entriesOf(batch, rows);
  const passed: readonly (readonly [type: string, value: string | null])[] = [
    ["bytea[]", byteasOf(ids)],
    ...(["row", "spec", "times", "together"] as const).map(
      (field) => ["int[]", list(entries.map((entry) => entry[field]))] as const,
    ),
    ...SPEC_TYPES.map((type, i) => [type, list(specs.map((spec) => spec[i] as number))] as const),
    ["float8", clockOf(batch[0] as PendingRequest)],
  ];
  return { name: "call_rows", types: passed.map(([type]) => type), values: passed.map(([, value]) => value), read };
}

/** Repeats the calls of one request on the rows' states at that point, and resolves it. */
function repeat(pending: PendingRequest, states: Stored[], rows: ReadonlyMap<string, number>, now: number): void {
  const decisions: Decision[] = [];
  const writes: [row: number, state: State | null][] = [];
  for (const [i, call] of pending.calls.entries()) {
    const id = pending.ids[i] as string;
    const row = rows.get(id) as number;
    const before = states[row] as Stored;
    if (call.op === "reset") {
      states[row] = null;
      pending.resolve(undefined);
      return;
    }
    if (before === "corrupt") {
      pending.corrupt(id);
      return;
    }
    const { decision, state } = decide(call, before, call, now);
    decisions.push(decision);
    writes.push([row, state]);
  }
  if (decisions.every(({ ok }) => ok)) {
    for (const [row, state] of writes) {
      pending.created ||= states[row] === null && state !== null;
      states[row] = state;
    }
  }
  pending.resolve(pending.isJoint ? combined(decisions, now) : (decisions[0] as Decision));
}

function readRows(batch: readonly PendingRequest[]): FunctionCall {
  const { ids, read } = rowsOf(batch);
  return {
    name: "read_rows",
    types: ["bytea[]", "float8"],
    values: [byteasOf(ids), clockOf(batch[0] as PendingRequest)],
    read,
  };
}

/** Finds those of these rows that another transaction has locked: their ids. */
export function lockedRows(ids: readonly string[]): FunctionCall<string[]> {
  return {
    name: "locked_rows",
    types: ["bytea[]"],
    values: [byteasOf(ids)],
    read(reply) {
      const places = String(reply) === "" ? [] : String(reply).split(",");
      return places.map((place) => ids[Number(place) - 1] ?? "");
    },
  };
}

/** ASCII that means itself both in a bytea and between the quotes of an array. */
const PLAIN = /^[ !#-[\]-~]*$/;
/** How a name begins keeps it from reading as hexadecimal. */
const HEX = "\\x";

/**
 * A limit's identity as PostgreSQL reads a `bytea`: its bytes in generalized UTF-8, so that no two strings are the same.
 * Plain ASCII is written as it is, the rest in hexadecimal. A name precedes every key, so nothing plain begins with a
 * backslash.
 */
export function byteaOf(identity: string): string {
  return identity === "" || PLAIN.test(identity) ? identity : HEX + hexOf(identity);
}

function byteasOf(identities: readonly string[]): string {
  let text = "{";
  for (const identity of identities) {
    if (text.length > 1) text += ",";
    text += PLAIN.test(identity) ? `"${identity}"` : `"\\${HEX}${hexOf(identity)}"`;
  }
  return `${text}}`;
}

/** Sorts as PostgreSQL sorts `bytea`. All of ASCII compares the same by characters; what is not sorts by its bytes. */
function inOrder(a: string, b: string): number {
  if (PLAIN.test(a) && PLAIN.test(b)) return a < b ? -1 : a > b ? 1 : 0;
  const x = hexOf(a);
  const y = hexOf(b);
  return x < y ? -1 : x > y ? 1 : 0;
}
