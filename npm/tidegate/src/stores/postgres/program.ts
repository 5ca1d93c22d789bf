/** Any mix of calls as one statement, and the core's own evaluation of what it found. */
import type { Decision, State } from "../../limit/decision.ts";
import type { Call } from "../contract.ts";
import { settle } from "../transactional.ts";
import { type Before, partsOf, stateOf } from "./answer.ts";
import type { Pending } from "./pending.ts";
import { Places } from "./places.ts";
import type { Turn } from "./plain.ts";

/** One call of the program, and where what it is about stands. */
interface Step {
  readonly call: Call;
  readonly first: number;
  readonly size: number;
  /** The places of the two shards to look at. */
  readonly pair: readonly [number, number] | undefined;
}

/** One pending call: its steps, and whether they go together. */
interface Unit {
  readonly pending: Pending;
  readonly steps: readonly Step[];
}

/** A shard that is stored corrupt, met while carrying a step out. */
class CorruptPlace {
  constructor(readonly place: number) {}
}

interface Planned {
  readonly decision: Decision;
  readonly writes: readonly (readonly [place: number, state: State])[];
}

/** These calls, in their order, in one statement. */
export function runMany(schema: string, some: readonly Pending[]): Turn {
  const places = new Places();
  const units: Unit[] = [];
  const program: number[] = [];
  let pools = false;
  let last = -1;
  for (const pending of some) {
    const { asked } = pending;
    if (asked.kind === "one") {
      const step = stepOf(places, asked.call);
      units.push({ pending, steps: [step] });
      if (step.size === 1) {
        const spec = places.spec(asked.call, false);
        if (last >= 0 && program[last] === step.first && program[last + 1] === spec) {
          program[last + 2] = (program[last + 2] as number) + 1;
        } else {
          last = program.push(0, step.first, spec, 1) - 3;
        }
        continue;
      }
      program.push(1, 1, ...memberOf(places, step));
      pools ||= step.pair === undefined;
    } else if (asked.kind === "all") {
      const steps = asked.calls.map((call) => stepOf(places, call));
      units.push({ pending, steps });
      program.push(1, steps.length, ...steps.flatMap((step) => memberOf(places, step)));
    }
    last = -1;
  }
  const { ids, places: at, specs, pools: pool } = places.values();
  const { now } = some[0] as Pending;
  const values = [
    ids,
    at,
    String(places.total),
    specs,
    `{${program.join(",")}}`,
    pools,
    ...pool,
    now === undefined ? null : String(now),
  ];
  const call = `${schema}.run($1::text::bytea[], $2::text::int[], $3::text::int, $4::text::float8[], $5::text::int[], $6::boolean, $7::text::bytea[], $8::text::bytea[], $9::text::int[], $10::text::int[], $11::text::float8)`;
  return {
    call,
    values,
    settle(answer) {
      const [clock, pooled, v = "", t = ""] = partsOf(answer, ";", 4);
      const [value, ts] = [v.split(","), t.split(",")];
      const states: Before[] = [null];
      for (let i = 0; i < places.total; i++) states.push(stateOf(value[i], ts[i]));
      for (const unit of units) replay(unit, states, Number(clock), pooled === "1", places);
      return [];
    },
  };
}

function stepOf(places: Places, call: Call): Step {
  const { limit, key, op } = call;
  const { first, size } = places.stretch(limit, key);
  if (size === 1 || op === "give" || op === "charge") return { call, first, size, pair: undefined };
  const [a, b] = limit.pick(Math.random());
  return { call, first, size, pair: [places.shard(limit, key, a), places.shard(limit, key, b)] };
}

function memberOf(places: Places, { call, first, size, pair }: Step): number[] {
  if (size === 1) return [0, first, places.spec(call, false)];
  const pool = [first, size, places.spec(call, false), places.spec(call, true)];
  return pair === undefined ? [2, 0, 0, ...pool] : [1, ...pair, ...pool];
}

/**
 * Two requests on one limit and key ask for their sum, and only the last of them takes it: of several shards, the others
 * may have named others. The limiter has checked that the sum is a legal count.
 */
export function summed(calls: readonly Call[]): Call[] {
  const ids = calls.map(({ limit, key }) => limit.identity(key));
  const asked = new Map<string, number>();
  return calls.map((call, i) => {
    const id = ids[i] as string;
    const count = (asked.get(id) ?? 0) + call.count;
    asked.set(id, count);
    return { ...call, count, op: ids.lastIndexOf(id) === i ? call.op : "check" };
  });
}

/** Carries a unit out on what was there, and answers it. */
function replay({ pending, steps }: Unit, states: Before[], now: number, pooled: boolean, places: Places): void {
  let plans: Planned[];
  try {
    plans = steps.map((step) => plan(step, states, now, pooled));
  } catch (error) {
    if (!(error instanceof CorruptPlace)) throw error;
    pending.corrupt(places.identityAt(error.place));
    return;
  }
  const decisions = plans.map(({ decision }) => decision);
  const granted = decisions.every(({ ok }) => ok);
  if (granted) for (const [place, state] of plans.flatMap(({ writes }) => writes)) states[place] = state;
  pending.resolve(pending.asked.kind === "one" ? (decisions[0] as Decision) : settle(decisions, now));
}

function plan({ call, first, size, pair }: Step, states: readonly Before[], now: number, pooled: boolean): Planned {
  const { limit, key } = call;
  const start = limit.start(key);
  const at = (place: number): State | null => {
    const state = states[place] ?? null;
    if (state === "corrupt") throw new CorruptPlace(place);
    return state;
  };
  if (size === 1) {
    const before = at(first);
    const { decision, state } = limit.evaluate(before, call, now, { start });
    return { decision, writes: state === null || state === before ? [] : [[first, state]] };
  }
  if (pair !== undefined) {
    const before = [at(pair[0]), at(pair[1])] as const;
    const { decision, which, state } = limit.better(before, call, now, start);
    if (decision.ok) {
      return { decision, writes: state === null || state === before[which] ? [] : [[pair[which], state]] };
    }
    if (!pooled) throw new TypeError("the database and the core disagree about a shard");
  }
  const all = Array.from({ length: size }, (_, shard) => at(first + shard));
  const { decision, states: writes } = limit.pool(all, call, now, start);
  return { decision, writes: writes?.map((state, shard) => [first + shard, state] as const) ?? [] };
}
