/** The laws of the algebra, through the package: any policy, any history, any clock. */
import { keyed } from "../src/limiter/options.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Config, defineLimits, evaluate, type Limiter, type MemoryStore, type State } from "../src/index.ts";
import { type FakeClock, fakeClock } from "../src/testing/index.ts";

const START = 1_763_640_000_000;
const amount = (max: number) => fc.oneof(fc.integer({ min: 1, max }), fc.double({ min: 0.01, max, noNaN: true }));
const capacity = fc.option(amount(200), { nil: undefined });
const maxReserved = fc.option(fc.oneof(fc.constant(0), amount(50)), { nil: undefined });
const period = fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 100, max: 10_000_000 }));
const config: fc.Arbitrary<Config> = fc.oneof(
  fc.record({ kind: fc.constant("token bucket" as const), rate: amount(100), period, capacity, maxReserved }),
  fc.record({
    kind: fc.constant("fixed window" as const),
    rate: amount(100),
    period,
    capacity,
    maxReserved,
    start: fc.integer({ min: -1e6, max: 1e6 }),
  }),
);

interface Call {
  count: number;
  reserve: boolean;
  wait: number;
}
const calls = (wait: fc.Arbitrary<number>): fc.Arbitrary<Call[]> =>
  fc.array(fc.record({ count: fc.oneof(fc.constant(1), fc.constant(0), amount(120)), reserve: fc.boolean(), wait }), {
    maxLength: 60,
  });
const forward = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 100_000 }));
const steps = fc.oneof(forward, fc.integer({ min: -60_000, max: 60_000 }));

function limiter(one: Config): { limits: Limiter<"l", MemoryStore>; clock: FakeClock } {
  const clock = fakeClock(START);
  return { limits: defineLimits({ l: one }, { now: clock.now }), clock };
}

/** The most that law 1 lets a limit grant from its first call at START until `end`. */
function bound(one: Config, end: number): number {
  return (one.capacity ?? one.rate) + come(one, START, end);
}

const window = (one: Extract<Config, { kind: "fixed window" }>, at: number) =>
  Math.floor((at - Number(one.start ?? 0)) / Number(one.period));

/** The tokens that come back from `begin` to `end`. */
function come(one: Config, begin: number, end: number): number {
  if (one.kind === "token bucket") return (one.rate * (end - begin)) / Number(one.period);
  return one.rate * (window(one, end) - window(one, begin));
}

/** When the window of START begins: a token bucket that finds it stored counts from there. */
const beginOf = (one: Config): number =>
  one.kind === "token bucket" ? START : Number(one.start ?? 0) + window(one, START) * Number(one.period);

describe("two limits of one name, as in a rolling deployment, while their state is stored", () => {
  const both = fc.tuple(config, config);
  const together = fc.array(fc.record({ first: fc.boolean(), count: amount(120), wait: forward }), { maxLength: 60 });

  // What came back between the beginning of the first call's window and that call counts, too.
  const bucket: Config = { kind: "token bucket", rate: 1, period: 100, capacity: 83 };
  const longer: Config = { kind: "fixed window", rate: 1, period: 67_691, start: 0 };
  const shorter: Config = { kind: "fixed window", rate: 1, period: 8919, start: 0, capacity: 95 };
  const atOnce = (...counts: [number, number]) => counts.map((count, i) => ({ first: i === 0, count, wait: 0 }));

  test("grant no more than the larger rate and capacity if both are token buckets, else than both rates since the window of the first call began", () => {
    fc.assert(
      fc.property(both, together, (configs, history) => {
        let state: State | null = null;
        let now = START;
        let granted = 0;
        for (const { first, count, wait } of history) {
          now += wait;
          const taken = evaluate(state, configs[first ? 0 : 1], { now, count });
          state = taken.state;
          if (taken.decision.ok) granted += count;
        }
        const [one, other] = configs;
        const most = Math.max(one.capacity ?? one.rate, other.capacity ?? other.rate);
        const buckets = one.kind === "token bucket" && other.kind === "token bucket";
        const begin = Math.min(beginOf(one), beginOf(other));
        const [a, b] = [come(one, begin, now), come(other, begin, now)];
        const allowed = most + (buckets ? Math.max(a, b) : a + b);
        expect(granted).toBeLessThanOrEqual(allowed * (1 + 1e-9) + 1e-6);
      }),
      {
        examples: [
          [[{ ...shorter, capacity: 17 }, bucket], atOnce(1, 83)],
          [[shorter, longer], atOnce(95, 0.01)],
        ],
      },
    );
  });
});

describe("bound: no history is granted more than the limit allows", () => {
  test.each([
    ["a clock that goes on", forward],
    ["a clock that steps back and forth", steps],
  ])("%s", (_, wait) => {
    fc.assert(
      fc.property(config, calls(wait), (one, history) => {
        const { limits, clock } = limiter(one);
        const grants: { at: number; count: number }[] = [];
        let latest = START;
        for (const call of history) {
          clock.set(Math.max(clock.now() + call.wait, START));
          latest = Math.max(latest, clock.now());
          const d = limits.limit("l", { count: call.count, reserve: call.reserve });
          // A reservation counts at its retryAt; a clock that is behind, at its running maximum.
          if (d.ok) grants.push({ at: Math.max(d.retryAt ?? latest, latest), count: call.count });
        }
        for (const { at: end } of grants) {
          const granted = grants.filter(({ at }) => at <= end).reduce((sum, { count }) => sum + count, 0);
          const most = bound(one, end);
          expect(granted).toBeLessThanOrEqual(most * (1 + 1e-12) + 1e-9);
        }
      }),
    );
  });
});

test("exact retry: granted at retryAt, denied one ms before", () => {
  let denials = 0;
  fc.assert(
    fc.property(config, calls(forward), amount(150), fc.boolean(), (one, history, count, reserve) => {
      const { limits, clock } = limiter(one);
      limits.charge("l", { count: one.capacity ?? one.rate });
      for (const call of history.slice(0, 10)) {
        clock.advance(call.wait);
        limits.limit("l", call.reserve ? { count: call.count, reserve: true } : { count: call.count });
      }
      const denied = limits.check("l", { count, reserve });
      if (denied.ok) return;
      if (denied.retryAt === undefined) {
        expect(denied.reason).toBeDefined();
        return;
      }
      denials++;
      expect(denied.retryAfter).toBe(denied.retryAt - clock.now());
      clock.set(denied.retryAt - 1);
      expect(limits.limit("l", { count, reserve }).ok).toBe(false);
      clock.set(denied.retryAt);
      expect(limits.limit("l", { count, reserve }).ok).toBe(true);
    }),
    { numRuns: 500 },
  );
  expect(denials).toBeGreaterThan(50);
});

test("denials and checks are free: leaving them out changes nothing, to the bit", () => {
  fc.assert(
    fc.property(config, calls(steps), (one, history) => {
      const { limits, clock } = limiter(one);
      const other = limiter(one);
      for (const call of history) {
        clock.set(Math.max(clock.now() + call.wait, START));
        other.clock.set(clock.now());
        const options = { count: call.count, reserve: call.reserve };
        const checked = limits.check("l", options);
        const d = limits.limit("l", options);
        expect(checked).toEqual(d);
        if (d.ok) expect(other.limits.limit("l", options)).toEqual(d);
        expect(other.limits.getValue("l")).toEqual(limits.getValue("l"));
      }
    }),
  );
});

test("the store and the pure evaluation return the same decisions", () => {
  fc.assert(
    fc.property(config, calls(steps), (one, history) => {
      const { limits, clock } = limiter(one);
      let state: Parameters<typeof evaluate>[0] = null;
      for (const call of history) {
        clock.set(Math.max(clock.now() + call.wait, START));
        const evaluated = evaluate(state, one, { now: clock.now(), count: call.count, reserve: call.reserve });
        state = evaluated.state;
        const { policy: _, ...d } = limits.limit("l", { count: call.count, reserve: call.reserve });
        expect({ ...evaluated.decision }).toMatchObject(d);
      }
    }),
  );
});

test("all or nothing: a denied limitAll changes no state", () => {
  const clock = fakeClock(START);
  const requests = fc.array(
    fc.record({
      name: fc.constantFrom("a", "b", "c"),
      key: fc.constantFrom(undefined, "k"),
      count: fc.oneof(fc.constant(1), amount(8)),
    }),
    { minLength: 1, maxLength: 6 },
  );
  fc.assert(
    fc.property(fc.array(requests, { maxLength: 12 }), (several) => {
      const limits = defineLimits(
        {
          a: { kind: "token bucket", rate: 10, period: 1000 },
          b: { kind: "fixed window", rate: 8, period: 1000 },
          c: { kind: "token bucket", rate: 12, period: 1000, shards: 3 },
        },
        { now: clock.now },
      );
      const all = () =>
        (["a", "b", "c"] as const).flatMap((name) => [limits.getValue(name), limits.getValue(name, { key: "k" })]);
      for (const drawn of several) {
        const one = drawn.map(({ key, ...rest }) => ({ ...rest, ...keyed(key) }));
        const before = all();
        const checked = limits.checkAll(one as never);
        expect(all()).toEqual(before);
        const d = limits.limitAll(one as never);
        expect(d.ok).toBe(checked.ok);
        const sum = (values: { value: number }[]) => values.reduce((total, { value }) => total + value, 0);
        const requested = one.reduce((total, { count }) => total + count, 0);
        if (d.ok) expect(sum(before) - sum(all())).toBeCloseTo(requested, 9);
        else expect(all()).toEqual(before);
        clock.advance(7);
      }
    }),
  );
});

test("a state written by a broken clock heals at the next call", () => {
  const { limits, clock } = limiter({ kind: "token bucket", rate: 5, period: 1000 });
  clock.advance(365 * 24 * 3_600_000);
  limits.limit("l", { count: 5 });
  clock.set(START);
  expect(limits.limit("l", { count: 5 }).ok).toBe(true);
  expect(limits.limit("l").retryAt).toBe(START + 200);
});
