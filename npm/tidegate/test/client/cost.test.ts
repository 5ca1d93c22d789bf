import { expect, test, vi } from "vitest";
import { semaphore, throttle } from "../../src/client/index.ts";
import { Queues } from "../../src/client/queues.ts";
import { defineLimits, SECOND } from "../../src/index.ts";
import { Evaluator } from "../../src/limit/evaluator.ts";
import { fakeClock } from "../../src/testing/index.ts";

const START = 1_735_689_600_000;

test("a hundred thousand queued calls cost the same each: one store call, and one timer for all", {
  timeout: 120_000,
}, async () => {
  const CALLS = 100_000;
  const clock = fakeClock(START);
  const counted = { taken: 0, given: 0, looked: 0, timers: 0, most: 0 };
  const limiter = defineLimits(
    { api: { kind: "token bucket", rate: 1000, period: SECOND, capacity: 0 } },
    { now: clock.now },
  );
  const policy = {
    name: "api",
    limiter: {
      limit: (name: "api", options: object) => {
        counted.taken++;
        return limiter.limit(name, options);
      },
      give: (name: "api", options: object) => {
        counted.given++;
        return limiter.give(name, options);
      },
      getValue: (name: "api", options: object) => {
        counted.looked++;
        return limiter.getValue(name, options);
      },
    },
  } as const;
  const watched = {
    now: clock.now,
    setTimeout: (callback: () => void, ms: number) => {
      counted.timers++;
      const timer = clock.setTimeout(callback, ms);
      counted.most = Math.max(counted.most, clock.timers);
      return timer;
    },
    clearTimeout: clock.clearTimeout,
  };
  const gone = new AbortController();
  let ran = 0;
  const throttled = throttle(() => void ran++, policy, { clock: watched, maxQueued: CALLS });
  const half = throttled.with({ signal: gone.signal });
  let aborted = 0;
  const calls: Promise<void>[] = [];
  for (let i = 0; i < CALLS; i++) calls.push((i % 2 === 0 ? throttled() : half()).catch(() => void aborted++));
  expect(counted).toEqual({ taken: CALLS, given: 0, looked: 0, timers: 1, most: 1 });
  gone.abort();
  expect([throttled.queued, counted.given, counted.looked]).toEqual([CALLS / 2, 1, 1]);
  clock.advance(60 * SECOND);
  await Promise.all(calls);
  expect([ran, aborted, clock.timers]).toEqual([CALLS / 2, CALLS / 2, 0]);
  // Half of them ran, one per ms: one timer each, never two at a time.
  expect(counted).toEqual({ taken: CALLS, given: 1, looked: 1, timers: CALLS / 2, most: 1 });
});

test("calls of fractions that are aborted one by one cost the same each, however their sum is rounded", async () => {
  const CALLS = 1000;
  const clock = fakeClock(START);
  const throttled = throttle(
    () => undefined,
    { kind: "token bucket", rate: 10, period: SECOND, capacity: 1 },
    { clock },
  );
  const clients = Array.from({ length: CALLS }, () => new AbortController());
  const calls = clients.map(({ signal }, i) => throttled.with({ signal, count: 1 + (i % 7) / 7 })());
  const projected = vi.spyOn(Evaluator.prototype, "project");
  for (const client of clients) client.abort();
  await Promise.allSettled(calls);
  expect(projected.mock.calls.length).toBeLessThan(10 * CALLS);
  projected.mockRestore();
});

test("tokens of fractions, whose sums are rounded, are returned in as many steps as there are calls", async () => {
  const clock = fakeClock(START);
  const throttled = throttle(
    (_tokens: number) => undefined,
    { kind: "token bucket", rate: 1, period: SECOND, capacity: 0 },
    { clock, count: (tokens: number) => tokens },
  );
  const client = new AbortController();
  const kept = throttled(2.5);
  const aborted = [0.6, 2.5].map((tokens) => throttled.with({ signal: client.signal })(tokens));
  const { max } = Math;
  // Each step takes a maximum. What throws would otherwise not end.
  const steps = vi.spyOn(Math, "max").mockImplementation((...of) => {
    if (steps.mock.calls.length > 100) throw new Error("it does not end");
    return max(...of);
  });
  client.abort();
  expect(steps.mock.calls.length).toBeLessThan(100);
  steps.mockRestore();
  await Promise.allSettled(aborted);
  await clock.pass(2.5 * SECOND);
  await kept;
});

test.each([0, 100])(
  "queues of idle keys are dropped beyond 1000, beside %i keys whose calls never end",
  async (hanging) => {
    let made = 0;
    const queues = new Queues(() => {
      made++;
      return { clock: fakeClock(START), maxQueued: 1 };
    });
    const call = { count: 1, priority: 5, notAfter: Infinity };
    for (let i = 0; i < hanging; i++) void queues.get(`hangs ${i}`).run(call, () => new Promise(() => undefined));
    for (let i = 0; i < 5000; i++) await queues.get(`idle ${i}`).run(call, () => undefined);
    for (let i = 0; i < 4000; i++) queues.get(`idle ${i}`);
    expect(made).toBe(hanging + 5000 + 4000);
    for (let i = 0; i < hanging; i++) expect(queues.get(`hangs ${i}`).running).toBe(1);
  },
);

/** How often `work` iterates over a collection from its start, which passes over all that was deleted there. */
async function iterationsOf(collection: "Set" | "Map", work: () => unknown): Promise<number> {
  const { prototype } = globalThis[collection] as typeof Set;
  const spies = ([Symbol.iterator, "entries", "values"] as const).map((name) => vi.spyOn(prototype, name));
  await work();
  const found = spies.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  for (const spy of spies) spy.mockRestore();
  return found;
}

test("a semaphore's release costs the same however many waited before", async () => {
  const one = semaphore(1);
  let order = "";
  const waits = Array.from({ length: 1000 }, async (_, i) => {
    const release = await one.acquire();
    order += `${i} `;
    release();
  });
  expect(await iterationsOf("Set", () => Promise.all(waits))).toBeLessThan(100);
  expect(order).toBe(waits.map((_, i) => `${i} `).join(""));
});

test("a call of a new key costs the same however many keys have calls that run", async () => {
  const queues = new Queues(() => ({ clock: fakeClock(START), maxQueued: 1 }));
  const call = { count: 1, priority: 5, notAfter: Infinity };
  const make = () => {
    for (let i = 0; i < 5000; i++) void queues.get(`hangs ${i}`).run(call, () => new Promise(() => undefined));
  };
  expect(await iterationsOf("Map", make)).toBeLessThan(100);
});
