import { expect, test } from "vitest";
import type { Config } from "tidegate";
import { type Call, type Decision, Limit, type Op, type State } from "tidegate/store";
import { combined } from "../../../npm/tidegate/src/limit/combined.ts";
import { take, withServer } from "./fixture.ts";

/** Steps in all; more on demand: `TIDEGATE_STEPS=1000000 npx vitest run --project stores differential`. */
const STEPS = Number(process.env["TIDEGATE_STEPS"] ?? 100_000);
const SEED = Number(process.env["TIDEGATE_SEED"] ?? 20_261_120);
const fixture = withServer();

/** mulberry32: the same steps for the same seed. */
function generator(seed: number): () => number {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const RATES = [1, 10, 3.3333333333333335, 0.1, 1e-9, 1e6, 2 ** 40, 123_456.789, 5e-324, 1e-300];
const PERIODS = [1, 7, 1000, 60_000, 86_400_000, 999_983, 2 ** 40];

function policy(random: () => number): Config {
  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const config: Config = {
    kind: one(["token bucket", "fixed window"] as const),
    rate: random() < 0.6 ? one(RATES) : random() * 100 + 1e-3,
    period: one(PERIODS),
  };
  if (random() < 0.6) config.capacity = one([0, 1, 10, 20, 0.5, 1000, 2 ** 40, random() * 50]);
  if (random() < 0.5) config.maxReserved = one([0, 1, 5, 100, 2 ** 40]);
  if (config.kind === "fixed window" && random() < 0.6) {
    config.start = random() < 0.5 ? "first request" : Math.floor((random() - 0.5) * 1e9);
  }
  // On one server a limit with shards is one bucket.
  if (random() < 0.25) config.shards = one([2, 3, 10]);
  return config;
}

/** A call, for the message of a step that differs. */
const words = ({ op, limit, key, count, reserve }: Call): string =>
  `${op} ${count} of ${JSON.stringify(limit.identity(key))}${reserve ? " or reserve" : ""} (${limit.policy.shards})`;

/** The core on states kept here: what every decision must be, to the bit. */
class Model {
  readonly states = new Map<string, State>();
  #get = (id: string): State | null => this.states.get(id) ?? null;

  plan(call: Call, now: number): { decision: Decision; id: string; state: State | null } {
    const { limit, key } = call;
    const id = limit.identity(key);
    return { id, ...limit.evaluate(this.#get(id), call, now, { start: limit.start(key) }) };
  }

  decide(call: Call, now: number): Decision {
    const { decision, id, state } = this.plan(call, now);
    if (state !== null) this.states.set(id, state);
    return decision;
  }

  decideAll(calls: readonly Call[], now: number) {
    const plans = calls.map((call) => this.plan(call, now));
    const decision = combined(
      plans.map((plan) => plan.decision),
      now,
    );
    if (decision.ok) for (const { id, state } of plans) if (state !== null) this.states.set(id, state);
    return decision;
  }
}

test(`${STEPS} random steps, in statements of many calls, are the core's to the bit`, {
  timeout: 1_200_000,
}, async () => {
  const random = generator(SEED);
  const store = fixture.store({ statements: 1 });
  const model = new Model();
  const limits = Array.from({ length: 40 }, (_, i) => new Limit(`limit${i}`, policy(random)));
  const keys = [undefined, "a", "b", "user:1", "\ud800", "é"];
  let now = 1_763_640_000_000;
  let steps = 0;
  let granted = 0;
  while (steps < STEPS) {
    const many = 1 + Math.floor(random() * 120);
    const answers: Promise<unknown>[] = [];
    const expected: unknown[] = [];
    const described: string[] = [];
    // Some turns are takes alone, some of those all on few keys.
    const plain = random() < 0.5;
    const some = plain && random() < 0.5 ? limits.slice(0, 3) : limits;
    const one = (): Call => {
      const limit = some[Math.floor(random() * some.length)] as Limit;
      const { capacity } = limit.policy;
      const count =
        random() < 0.1 ? 0 : random() < 0.5 ? Math.floor(random() * 4) : Math.min(random() * capacity, 2 ** 38);
      const ops: Op[] = ["take", "take", "take", "check", "give", "charge", "block"];
      const op = plain ? "take" : (ops[Math.floor(random() * ops.length)] as Op);
      const key = keys[Math.floor(random() * keys.length)];
      if (op === "block")
        return take(limit, key, Math.min(1 + Math.floor(random() * limit.policy.period * 3), 2 ** 40), { op });
      return take(limit, key, count, { op, reserve: !plain && (op === "take" || op === "check") && random() < 0.3 });
    };
    for (let i = 0; i < many; i++) {
      if (!plain && random() < 0.1) {
        const takes = Array.from({ length: 1 + Math.floor(random() * 4) }, () => ({ ...one(), op: "take" as const }));
        // A limiter adds up requests on one limit and key before a store has them.
        const calls = [...new Map(takes.map((call) => [call.limit.identity(call.key), call])).values()];
        answers.push(store.decideAll(calls, now));
        expected.push(model.decideAll(calls, now));
        described.push(`all of ${calls.map(words).join(", ")}`);
      } else {
        const call = one();
        answers.push(store.decide(call, now));
        expected.push(model.decide(call, now));
        described.push(words(call));
      }
    }
    const decided = await Promise.all(answers);
    for (const [i, answer] of decided.entries()) {
      expect(answer, `step ${steps + i} of seed ${SEED}: ${described.slice(0, i + 1).join("; ")}`).toStrictEqual(
        expected[i],
      );
    }
    granted += decided.filter((answer) => (answer as { ok: boolean }).ok).length;
    steps += many;
    const turn = random();
    if (turn < 0.5) now += Math.floor(random() * 200);
    else if (turn < 0.6) now += Math.floor(random() * 1e8);
    else if (turn < 0.65) now = Math.max(0, now - Math.floor(random() * 8_000_000));
    if (random() < 0.02) {
      const limit = limits[Math.floor(random() * limits.length)] as Limit;
      const key = keys[Math.floor(random() * keys.length)];
      await store.reset(limit, key);
      model.states.delete(limit.identity(key));
    }
  }
  expect(granted).toBeGreaterThan(STEPS / 10);
  expect(granted).toBeLessThan((STEPS * 9) / 10);
  // What is stored, row by row: no more, no less, and the same bits.
  const rows = await fixture.rows(
    "SELECT encode(id, 'hex') AS id, encode(float8send(value), 'hex') || encode(float8send(ts), 'hex') AS bits FROM tidegate.states",
  );
  const { generalizedUtf8 } = await import("../../../npm/tidegate/src/engine/utf8.ts");
  const bits = ({ value, ts }: State): string => {
    const bytes = Buffer.alloc(16);
    bytes.writeDoubleBE(value, 0);
    bytes.writeDoubleBE(ts, 8);
    return bytes.toString("hex");
  };
  const kept = [...model.states].map(([id, state]) => [Buffer.from(generalizedUtf8(id)).toString("hex"), bits(state)]);
  expect(new Map(rows.map(({ id, bits: stored }) => [id, stored]))).toEqual(new Map(kept as [string, string][]));
});
