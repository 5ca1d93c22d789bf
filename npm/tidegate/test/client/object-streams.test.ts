import { Readable } from "node:stream";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limitObjectStream, type ObjectLimitOptions } from "../../src/client/index.ts";
import { limitNodeObjectStream } from "../../src/client/node.ts";
import { defineLimits, SECOND } from "../../src/index.ts";
import { type FakeClock, fakeClock } from "../../src/testing/index.ts";
import { type Flow, pass, throughNode, throughWeb } from "./flows.ts";

const START = 1_735_689_600_000;

interface Row {
  readonly id: number;
  readonly weight: number;
}
/** The rows that came out, each with its ms since the start. */
interface Rows extends Flow {
  readonly out: (Row & { readonly at: number })[];
}
/** Sends rows through a limited stream, into a reader that keeps up; `undefined` ends them. */
type Run = (options: ObjectLimitOptions<Row>, next: (id: number) => Row | undefined, clock: FakeClock) => Rows;

const web: Run = (options, next, clock) => {
  const out: Rows["out"] = [];
  const write = (row: Row) => void out.push({ ...row, at: clock.now() - START });
  return Object.assign(throughWeb(limitObjectStream({ ...options, clock }), next, write), { out });
};

const node: Run = (options, next, clock) => {
  const out: Rows["out"] = [];
  const write = (row: Row) => void out.push({ ...row, at: clock.now() - START });
  return Object.assign(throughNode(limitNodeObjectStream({ ...options, clock }), next, write), { out });
};

describe.each([
  ["a web stream", web],
  ["a stream of Node.js", node],
])("%s of objects", (_, run) => {
  const row = (id: number): Row => ({ id, weight: 1 });

  test("passes so many a second, in order, after a burst", async () => {
    const clock = fakeClock(START);
    const flow = run({ perSecond: 10, burst: 5 }, row, clock);
    await pass(clock, SECOND, 50);
    expect(flow.out.map(({ id }) => id)).toEqual(Array.from({ length: 15 }, (_, i) => i));
    expect(flow.out.map(({ at }) => at)).toEqual([0, 0, 0, 0, 0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
  });

  test("passes so much weight a second; one that exceeds the burst waits until all of it is paid", async () => {
    const clock = fakeClock(START);
    const weights = [4, 1, 20, 0, 5];
    const flow = run(
      { perSecond: 10, burst: 5, weight: ({ weight }) => weight },
      (id) => (id < weights.length ? { id, weight: weights[id] as number } : undefined),
      clock,
    );
    await pass(clock, 5 * SECOND, 50);
    expect(flow.out.map(({ weight, at }) => [weight, at])).toEqual([
      [4, 0],
      [1, 0],
      [20, 2000],
      [0, 2000],
      [5, 2500],
    ]);
  });

  test("applies backpressure: it buffers a few objects, however long it runs", async () => {
    const clock = fakeClock(START);
    const flow = run({ perSecond: 10 }, row, clock);
    await pass(clock, 5 * SECOND, 50);
    expect(flow.out).toHaveLength(51);
    expect(flow.pulled - flow.out.length).toBeLessThanOrEqual(5);
  });

  test("several streams share one limit", async () => {
    const clock = fakeClock(START);
    const policy = { kind: "token bucket", rate: 100, period: SECOND, capacity: 10 } as const;
    const limit = { limiter: defineLimits({ rows: policy }, { now: clock.now }), name: "rows" } as const;
    const flows = [1, 2, 3].map(() => run({ limit }, row, clock));
    await pass(clock, 3 * SECOND, 50);
    expect(flows.reduce((sum, { out }) => sum + out.length, 0)).toBe(310);
    for (const { out } of flows) expect(out.length).toBeGreaterThan(60);
  });

  test("a weight that is no number of tokens fails the stream with an InputError", async () => {
    for (const weight of [-1, Number.NaN, 2 ** 41, "5", undefined]) {
      const clock = fakeClock(START);
      const flow = run({ perSecond: 10, weight: () => weight as never }, row, clock);
      await pass(clock, 100, 50);
      expect(String(flow.error)).toContain("`weight` must be a function that returns a number from 0 to 1099511627776");
      expect(flow.out).toEqual([]);
    }
  });

  test.each([
    [{}, "`perSecond` must be given, or `limit`, and not both; got undefined"],
    [{ perSecond: 0 }, "`perSecond` must be a number above 0 and up to 1099511627776; got 0"],
    [{ perSecond: 10, burst: 0 }, "`burst` must be a number above 0 and up to 1099511627776; got 0"],
    [{ perSecond: 10, limit: {} }, "`perSecond` must be given, or `limit`, and not both; got 10"],
    [{ limit: {}, burst: 5 }, "`burst` must be absent with `limit`, whose capacity it is; got 5"],
    [{ perSecond: 10, weight: 5 }, "`weight` must be a function"],
    [{ perSecond: 10, bytesPerSecond: 1 }, "`bytesPerSecond` must be absent"],
  ])("throws immediately for invalid options: %j", (options, message) => {
    expect(() => run(options as never, row, fakeClock(START))).toThrow(message);
  });
});

test("no span holds more weight than the burst, or its heaviest object, and what came in the span", async () => {
  const weights = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 20 });
  const run = fc.asyncProperty(weights, fc.integer({ min: 1, max: 8 }), async (weights, burst) => {
    const clock = fakeClock(START);
    const next = (id: number) => (id < weights.length ? { id, weight: weights[id] as number } : undefined);
    const { out } = web({ perSecond: 10, burst, weight: ({ weight }) => weight }, next, clock);
    await pass(clock, 30 * SECOND, 500);
    expect(out.map(({ weight }) => weight)).toEqual(weights);
    for (const [i, { at: from }] of out.entries()) {
      let [sum, heaviest] = [0, 0];
      for (const { at, weight } of out.slice(i)) {
        sum += weight;
        heaviest = Math.max(heaviest, weight);
        expect(sum).toBeLessThanOrEqual(Math.max(burst, heaviest) + ((at - from) * 10) / SECOND + 0.02);
      }
    }
  });
  await fc.assert(run, { numRuns: 15 });
});

test("any value but null, which ends a stream of Node.js, passes", async () => {
  const values = [0, "", false, undefined, 1];
  const options = { perSecond: 1, burst: values.length };
  expect(await Readable.from(values).pipe(limitNodeObjectStream(options)).toArray()).toEqual(values);
  const passed: unknown[] = [];
  const sink = new WritableStream({ write: (value) => void passed.push(value) });
  await (Readable.toWeb(Readable.from(values)) as ReadableStream).pipeThrough(limitObjectStream(options)).pipeTo(sink);
  expect(passed).toEqual(values);
});

test("a cancelled or destroyed stream leaves no timer", async () => {
  const clock = fakeClock(START);
  const stream = limitNodeObjectStream({ perSecond: 1, clock });
  stream.on("error", () => undefined).resume();
  for (const id of [1, 2]) stream.write({ id });
  await clock.pass(200);
  expect(clock.timers).toBe(1);
  stream.destroy();
  await clock.pass(0);
  expect(clock.timers).toBe(0);
  const { readable, writable } = limitObjectStream({ perSecond: 1, clock });
  const writer = writable.getWriter();
  const writes = [1, 2].map((id) => writer.write({ id }).catch(() => undefined));
  const reader = readable.getReader();
  await reader.read();
  const second = reader.read();
  await clock.pass(100);
  expect(clock.timers).toBe(1);
  await reader.cancel();
  await Promise.all([second, ...writes]);
  expect(clock.timers).toBe(0);
});
