/** Laws of throttling for any policy, any calls and any aborts. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { throttle } from "../../src/client/index.ts";
import { type Config, defineLimits, SECOND } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";

const START = 1_735_689_600_000;
const whole = (max: number) => fc.integer({ min: 1, max });
const configWith = (...periods: number[]): fc.Arbitrary<Config> =>
  fc.oneof(
    fc.record({
      kind: fc.constant("token bucket" as const),
      rate: whole(50),
      period: fc.constantFrom(...periods),
      capacity: fc.nat(30),
    }),
    fc.record({
      kind: fc.constant("fixed window" as const),
      rate: whole(20),
      period: fc.constantFrom(...periods),
      capacity: whole(30),
      start: fc.nat(99),
    }),
  );
const config = configWith(100, 1000, 7000);
/** Its tokens are multiples of a power of two, so that no sum is rounded. */
const exactConfig = configWith(128, 1024, 8192);
interface Call {
  wait: number;
  count: number;
  priority: number;
  /** ms until the call is aborted; absent: never. */
  abort: number | undefined;
}
const calls = (priority: fc.Arbitrary<number>, abort: fc.Arbitrary<number | undefined>): fc.Arbitrary<Call[]> =>
  fc.array(fc.record({ wait: fc.oneof(fc.constant(0), fc.nat(400)), count: fc.nat(12), priority, abort }), {
    minLength: 1,
    maxLength: 40,
  });
const dueIn1Ms: Config = { kind: "token bucket", rate: 50, period: 100, capacity: 1 };
const once: Call = { wait: 1, count: 1, priority: 5, abort: undefined };
const never = fc.constant(undefined);
const sometimes = fc.oneof({ weight: 2, arbitrary: never }, { weight: 1, arbitrary: fc.nat(2000) });

interface Run {
  index: number;
  at: number;
  count: number;
}

/** Makes the calls in order, runs the clock until all are settled, and returns what ran when. */
async function play(one: Config, history: readonly Call[], policies = 1) {
  const clock = fakeClock(START);
  const limiter = defineLimits({ api: one }, { now: clock.now });
  const ran: Run[] = [];
  const note = (index: number): void => {
    ran.push({ index, at: clock.now(), count: history[index]?.count ?? 0 });
  };
  const throttles = Array.from({ length: policies }, () => throttle(note, { limiter, name: "api" }, { clock }));
  let aborted = 0;
  const made: number[] = [];
  for (const [index, { wait, count, priority, abort }] of history.entries()) {
    await clock.pass(wait);
    made.push(clock.now());
    const gone = new AbortController();
    const throttled = throttles[index % policies] as (typeof throttles)[0];
    throttled
      .with({ count, priority, signal: gone.signal })(index)
      .catch(() => aborted++);
    if (abort !== undefined) clock.setTimeout(() => gone.abort(), abort);
  }
  for (let i = 0; clock.timers > 0; i++) {
    if (i > 10_000) throw new Error("it does not end");
    await clock.pass(1000);
  }
  await clock.pass(0);
  return { ran, aborted, made, limiter, clock, throttles };
}

/** The most that ran in any span between two runs. */
function within(one: Config, ran: readonly Run[], slack: number): void {
  // A window adds its tokens at its start; what a debt leaves of them is available too.
  const besides = one.kind === "fixed window" ? one.rate : 0;
  const biggest = Math.max(one.capacity ?? one.rate, ...ran.map(({ count }) => count)) + besides + slack;
  const start = one.kind === "fixed window" ? Number(one.start ?? 0) : 0;
  const window = (at: number): number => Math.floor((at - start) / Number(one.period));
  for (const [i, { at: from }] of ran.entries()) {
    let sum = 0;
    for (const { at, count } of ran.slice(i)) {
      sum += count;
      const windows = window(at) - window(from);
      const came = one.kind === "token bucket" ? (one.rate * (at - from)) / Number(one.period) : one.rate * windows;
      // A reservation is for a whole ms.
      const early = one.kind === "token bucket" ? one.rate / Number(one.period) : 0;
      expect(sum).toBeLessThanOrEqual((biggest + came + early) * (1 + 1e-9) + 1e-6);
    }
  }
}

describe("any sequence of calls", () => {
  // Where no sum of tokens is rounded: a rounding error may cost the next call a ms.
  test("without aborts, calls run in order, each at the exact ms of its reservation", async () => {
    await fc.assert(
      fc.asyncProperty(exactConfig, calls(fc.constant(5), never), async (one, history) => {
        const { ran, made } = await play(one, history);
        expect(ran.map(({ index }) => index)).toEqual(history.map((_, i) => i));
        const clock = fakeClock(START);
        const plain = defineLimits({ api: one }, { now: clock.now });
        let last = 0;
        for (const [i, { count }] of history.entries()) {
          clock.set(made[i] as number);
          const { retryAt = clock.now() } = plain.limit("api", { count, reserve: true });
          // A call of no tokens waits only for those before it.
          last = Math.max(last, count === 0 ? clock.now() : retryAt);
          expect(ran[i]?.at).toBe(last);
        }
      }),
      // The second call is due 1 ms after it is made, which random calls rarely are.
      { numRuns: 100, examples: [[dueIn1Ms, [once, once]]] },
    );
  });

  test("with aborts and priorities, every call either runs once or rejects, and none stays queued", async () => {
    await fc.assert(
      fc.asyncProperty(config, calls(fc.integer({ min: 0, max: 9 }), sometimes), async (one, history) => {
        const { ran, aborted, limiter, clock, throttles } = await play(one, history);
        expect(new Set(ran.map(({ index }) => index)).size).toBe(ran.length);
        expect(ran.length + aborted).toBe(history.length);
        expect([throttles[0]?.queued, throttles[0]?.running, clock.timers]).toEqual([0, 0, 0]);
        // Calls that did not run gave their tokens back: the limit is full once those of the others have refilled.
        const spent = ran.reduce((sum, { count }) => sum + count, 0);
        clock.advance((Math.ceil(spent / one.rate) + 1) * Number(one.period));
        expect(limiter.getValue("api").value).toBe(one.capacity);
      }),
      { numRuns: 100 },
    );
  });

  const anyPriority = fc.integer({ min: 0, max: 9 });
  const strictly = (throttles: number, call: number): number => (throttles === 1 ? 0 : throttles * call);
  const spans = (histories: fc.Arbitrary<Call[]>, slack: (throttles: number, call: number) => number): Promise<void> =>
    fc.assert(
      fc.asyncProperty(config, histories, fc.integer({ min: 1, max: 3 }), async (one, history, throttles) => {
        const { ran } = await play(one, history, throttles);
        within(one, ran, slack(throttles, Math.max(...history.map(({ count }) => count))));
      }),
      { numRuns: 100 },
    );

  test("no span exceeds the policy, with aborts and several throttles on one limit", async () => {
    await spans(calls(fc.constant(5), sometimes), strictly);
  });

  test("no span exceeds the policy, with priorities and several throttles on one limit", async () => {
    await spans(calls(anyPriority, never), strictly);
  });

  test("no span exceeds the policy by more than a call of each throttle, with aborts and priorities", async () => {
    // Tokens that were reserved for an aborted call serve an urgent one, which runs at their time and not at its own.
    await spans(calls(anyPriority, sometimes), (throttles, call) => throttles * call);
  });

  test("tokens are conserved: aborted calls return all of theirs", async () => {
    await fc.assert(
      fc.asyncProperty(
        config,
        fc.array(fc.nat(12), { minLength: 1, maxLength: 30 }),
        fc.nat(3000),
        async (one, counts, at) => {
          const clock = fakeClock(START);
          const limiter = defineLimits({ api: one }, { now: clock.now });
          const gone = new AbortController();
          let used = 0;
          const spend = (count: number): void => {
            used += count;
          };
          const throttled = throttle(spend, { limiter, name: "api" }, { clock });
          for (const count of counts)
            throttled
              .with({ count, signal: gone.signal })(count)
              .catch(() => undefined);
          await clock.pass(at);
          gone.abort();
          await clock.pass(0);
          // As if only the calls that ran had been made: never more tokens, and fewer only by what a full limit could not store.
          const { value } = limiter.getValue("api");
          const most = one.capacity ?? one.rate;
          const plain = fakeClock(START);
          const same = defineLimits({ api: one }, { now: plain.now });
          same.limit("api", { count: used, reserve: true });
          plain.advance(at);
          expect(value).toBeCloseTo(Math.min(most, same.getValue("api").value), 6);
        },
      ),
      { numRuns: 100 },
    );
  });
});

test("a server with the same token bucket and one token more denies no call", async () => {
  const bucket = config.filter(({ kind, capacity }) => kind === "token bucket" && Number(capacity) >= 1);
  const ones = calls(fc.nat(9), never).map((history) => history.map((call) => ({ ...call, count: 1 })));
  await fc.assert(
    fc.asyncProperty(bucket, ones, async (one, history) => {
      const { ran } = await play(one, history);
      const clock = fakeClock(START);
      const server = defineLimits({ api: { ...one, capacity: Number(one.capacity) + 1 } }, { now: clock.now });
      for (const { at } of ran) {
        clock.set(at);
        expect(server.limit("api").ok).toBe(true);
      }
    }),
  );
});

test("no priority starves: among urgent calls without end, the least urgent one runs after at most 900", async () => {
  const clock = fakeClock(START);
  const ran: string[] = [];
  const throttled = throttle(
    (name: string) => void ran.push(name),
    { kind: "token bucket", rate: 1, period: SECOND },
    { clock },
  );
  void throttled("first");
  const patient = throttled.with({ priority: 0 })("patient");
  const all: Promise<unknown>[] = [];
  for (let i = 0; i < 1200; i++) {
    for (const who of ["a", "b"])
      all.push(
        throttled
          .with({ priority: 9 })(`urgent ${i} ${who}`)
          .catch(() => undefined),
      );
    clock.advance(SECOND);
    await Promise.resolve();
  }
  await clock.pass(0);
  const place = ran.indexOf("patient");
  expect(place).toBeGreaterThan(800);
  expect(place).toBeLessThanOrEqual(901);
  await patient;
  throttled.clear();
  await Promise.all(all);
});

test("urgent calls run first, and each priority in call order", async () => {
  const clock = fakeClock(START);
  const ran: string[] = [];
  const throttled = throttle(
    (name: string) => void ran.push(name),
    { kind: "token bucket", rate: 1, period: SECOND },
    { clock },
  );
  for (const name of ["5a", "5b", "1a", "9a", "5c", "9b"]) void throttled.with({ priority: Number(name[0]) })(name);
  await clock.pass(10 * SECOND);
  expect(ran).toEqual(["5a", "9a", "9b", "5b", "5c", "1a"]);
});

test("after a blocked event loop, one call catches up and the others keep the limit's spacing", async () => {
  const clock = fakeClock(START);
  const ran: number[] = [];
  const throttled = throttle(
    () => void ran.push(clock.now() - START),
    { kind: "token bucket", rate: 10, period: SECOND, capacity: 1 },
    { clock },
  );
  for (let i = 0; i < 10; i++) void throttled();
  await clock.pass(0);
  clock.set(START + 550);
  await clock.pass(1000);
  expect(ran).toEqual([0, 550, 550, 650, 750, 850, 950, 1050, 1150, 1250]);
});
