import { expect, test } from "vitest";
import type { Config } from "tidegate";
import { type Call, Limit, type Op, type State } from "tidegate/store";
import { Model } from "../model.ts";
import { Random } from "../random.ts";
import { take, withServer } from "./fixture.ts";

/** Steps in all; more on demand: `TIDEGATE_STEPS=1000000 npx vitest run --project stores differential`. */
const STEPS = Number(process.env["TIDEGATE_STEPS"] ?? 100_000);
const SEED = Number(process.env["TIDEGATE_SEED"] ?? 20_261_120);
const fixture = withServer();

const RATES = [1, 10, 3.3333333333333335, 0.1, 1e-9, 1e6, 2 ** 40, 123_456.789, 5e-324, 1e-300];
const PERIODS = [1, 7, 1000, 60_000, 86_400_000, 999_983, 2 ** 40];

function policy(random: Random): Config {
  const config: Config = {
    kind: random.pick(["token bucket", "fixed window"] as const),
    rate: random.chance(0.6) ? random.pick(RATES) : random.next() * 100 + 1e-3,
    period: random.pick(PERIODS),
  };
  if (random.chance(0.6)) config.capacity = random.pick([0, 1, 10, 20, 0.5, 1000, 2 ** 40, random.next() * 50]);
  if (random.chance(0.5)) config.maxReserved = random.pick([0, 1, 5, 100, 2 ** 40]);
  if (config.kind === "fixed window" && random.chance(0.6)) {
    config.start = random.chance(0.5) ? "first request" : Math.floor((random.next() - 0.5) * 1e9);
  }
  // On one server a limit with shards is one bucket.
  if (random.chance(0.25)) config.shards = random.pick([2, 3, 10]);
  return config;
}

/** A call, for the message of a step that differs. */
const words = ({ op, limit, key, count, reserve }: Call): string =>
  `${op} ${count} of ${JSON.stringify(limit.identity(key))}${reserve ? " or reserve" : ""} (${limit.policy.shards})`;

test(`${STEPS} random steps, in statements of many calls, are the core's to the bit`, {
  timeout: 1_200_000,
}, async () => {
  const random = new Random(SEED);
  const store = fixture.store({ statements: 1 });
  const model = new Model();
  const limits = Array.from({ length: 40 }, (_, i) => new Limit(`limit${i}`, policy(random)));
  const keys = [undefined, "a", "b", "user:1", "\ud800", "é"];
  let now = 1_763_640_000_000;
  let steps = 0;
  let granted = 0;
  while (steps < STEPS) {
    const many = 1 + random.below(120);
    const answers: Promise<unknown>[] = [];
    const expected: unknown[] = [];
    const described: string[] = [];
    // Some turns are takes alone, some of those all on few keys.
    const plain = random.chance(0.5);
    const chosen = plain && random.chance(0.5) ? limits.slice(0, 3) : limits;
    const one = (): Call => {
      const limit = random.pick(chosen);
      const { capacity } = limit.policy;
      const some = random.chance(0.5) ? random.below(4) : Math.min(random.next() * capacity, 2 ** 38);
      const count = random.chance(0.1) ? 0 : some;
      const ops: Op[] = ["take", "take", "take", "check", "give", "charge", "block"];
      const op = plain ? "take" : random.pick(ops);
      const key = random.pick(keys);
      if (op === "block")
        return take(limit, key, Math.min(1 + Math.floor(random.next() * limit.policy.period * 3), 2 ** 40), { op });
      const reserve = !plain && (op === "take" || op === "check") && random.chance(0.3);
      return take(limit, key, count, { op, reserve });
    };
    for (let i = 0; i < many; i++) {
      if (!plain && random.chance(0.1)) {
        const takes = Array.from({ length: 1 + random.below(4) }, () => ({ ...one(), op: "take" as const }));
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
    const turn = random.next();
    if (turn < 0.5) now += random.below(200);
    else if (turn < 0.6) now += random.below(1e8);
    else if (turn < 0.65) now = Math.max(0, now - random.below(8_000_000));
    if (random.chance(0.02)) {
      const limit = random.pick(limits);
      const key = random.pick(keys);
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
