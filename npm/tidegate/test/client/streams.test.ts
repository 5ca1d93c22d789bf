import { describe, expect, test, vi } from "vitest";
import { limitStream } from "../../src/client/index.ts";
import { limitNodeStream, type StreamLimitOptions } from "../../src/client/node.ts";
import { defineLimits, SECOND } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";
import { there } from "../realm.ts";
import { type Flow, pass, throughNode, throughWeb } from "./flows.ts";

const START = 1_735_689_600_000;

/** The sizes of the pieces that came out. */
interface Pieces extends Flow {
  readonly sizes: number[];
}

/** Sends chunks without end through a limited stream, into a reader that keeps up. */
type Run = (options: StreamLimitOptions, chunk: () => Uint8Array) => Pieces;

const web: Run = (options, chunk) => {
  const sizes: number[] = [];
  const flow = throughWeb(limitStream(options), chunk, ({ byteLength }) => void sizes.push(byteLength));
  return Object.assign(flow, { sizes });
};

const node: Run = (options, chunk) => {
  const sizes: number[] = [];
  const flow = throughNode(limitNodeStream(options), chunk, ({ byteLength }) => void sizes.push(byteLength));
  return Object.assign(flow, { sizes });
};

const bytesOf = ({ sizes }: Pieces): number => sizes.reduce((sum, size) => sum + size, 0);

describe.each([
  ["a web stream", web],
  ["a stream of Node.js", node],
])("%s", (_, run) => {
  test.each([
    ["chunks smaller than the burst", 1000, 100_000],
    ["chunks larger than the burst", 64_000, 100_000],
    ["a slow line", 100, 1200],
  ])("passes the policy's bytes in 10 s, to 2 percent: %s", async (_, size, bytesPerSecond) => {
    const clock = fakeClock(START);
    const bytes = new Uint8Array(size);
    const flow = run({ bytesPerSecond, clock }, () => bytes);
    await pass(clock, 10 * SECOND, 100);
    expect(bytesOf(flow)).toBeGreaterThan(bytesPerSecond * 10 * 0.98);
    expect(bytesOf(flow)).toBeLessThan(bytesPerSecond * 10 * 1.02);
    expect(Math.max(...flow.sizes)).toBe(Math.min(size, bytesPerSecond / 10));
  });

  test("applies backpressure: it buffers a few chunks, however long it runs", async () => {
    const clock = fakeClock(START);
    const bytes = new Uint8Array(1000);
    const flow = run({ bytesPerSecond: 10_000, burst: 1000, clock }, () => bytes);
    await pass(clock, 5 * SECOND, 100);
    expect(flow.pulled * 1000 - bytesOf(flow)).toBeLessThanOrEqual(5000);
    expect(bytesOf(flow)).toBeGreaterThan(49_000);
  });

  test("several streams share one limit", async () => {
    const clock = fakeClock(START);
    const limiter = defineLimits(
      { line: { kind: "token bucket", rate: 10_000, period: SECOND, capacity: 1000 } },
      { now: clock.now },
    );
    const limit = { limiter, name: "line" } as const;
    const flows = [1, 2, 3].map(() => run({ limit, burst: 500, clock }, () => new Uint8Array(700)));
    await pass(clock, 10 * SECOND, 100);
    const out = flows.map(bytesOf);
    const sum = out.reduce((a, b) => a + b, 0);
    expect(sum).toBeGreaterThan(98_000);
    expect(sum).toBeLessThan(102_000);
    for (const one of out) expect(one).toBeGreaterThan(30_000);
  });

  test.each([
    [
      undefined,
      "InputError: `burst` must be at most the `maxReserved` of `limit`, which all its streams share; got 65536",
    ],
    [
      10_000,
      "InputError: `burst` must be at most the `maxReserved` of `limit`, which all its streams share; got 10000",
    ],
    [5000, "undefined"],
  ])(
    "of a shared limit that may owe 5,000 bytes, a burst of %j fails with the field to set, unless it is as small",
    async (burst, error) => {
      const clock = fakeClock(START);
      const line = { kind: "token bucket", rate: 10_000, period: SECOND, maxReserved: 5000 } as const;
      const limiter = defineLimits({ line }, { now: clock.now });
      const flow = run({ limit: { limiter, name: "line" }, burst, clock }, () => new Uint8Array(80_000));
      await pass(clock, 2000, 100);
      expect(String(flow.error)).toBe(error);
    },
  );

  test("a piece that is denied although `maxReserved` holds it fails with the denial, as of a key that is blocked", async () => {
    const clock = fakeClock(START);
    const line = { kind: "token bucket", rate: 10_000, period: SECOND, maxReserved: 5000 } as const;
    const limiter = defineLimits({ line }, { now: clock.now });
    limiter.block("line", { for: 60 * SECOND });
    const flow = run({ limit: { limiter, name: "line" }, burst: 5000, clock }, () => new Uint8Array(100));
    await pass(clock, 100, 100);
    expect(String(flow.error)).toMatch(/^RateLimitError: rate limited by "line": retry in \d+ ms$/);
  });

  test("a chunk that is not bytes fails with an InputError", async () => {
    const clock = fakeClock(START);
    const flow = run({ bytesPerSecond: 1000, clock }, (() => 7) as never);
    await pass(clock, 100, 100);
    expect(String(flow.error)).toMatch(/`chunk` must be bytes|chunk.*must be of type/);
  });

  test.each([
    [{}, "`bytesPerSecond` must be given, or `limit`, and not both; got undefined"],
    [{ bytesPerSecond: 0 }, "`bytesPerSecond` must be a number of bytes above 0 and up to 1099511627776; got 0"],
    [{ bytesPerSecond: 10, burst: 0.5 }, "`burst` must be a number of bytes from 1 and up to 1099511627776; got 0.5"],
    [{ bytesPerSecond: 10, speed: 1 }, "`speed` must be absent"],
  ])("throws immediately for invalid options: %j", (options, message) => {
    expect(() => run(options as never, () => new Uint8Array(1))).toThrow(message);
  });
});

test("every byte comes out once, in order, for any chunks", async () => {
  const clock = fakeClock(START);
  const all = Uint8Array.from({ length: 5000 }, (_, i) => i % 251);
  const chunks = [0, 1, 10, 700, 701, 3000].map((at, i, from) => all.subarray(at, from[i + 1]));
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const limited = source.pipeThrough(limitStream({ bytesPerSecond: 10_000, burst: 300, clock }));
  const out = new Response(limited as ReadableStream<Uint8Array<ArrayBuffer>>);
  const read = out.arrayBuffer();
  await pass(clock, SECOND, 100);
  expect(new Uint8Array(await read)).toEqual(all);
});

test("a destroyed stream leaves no timer", async () => {
  const clock = fakeClock(START);
  const stream = limitNodeStream({ bytesPerSecond: 100, burst: 10, clock });
  stream.on("error", () => undefined).resume();
  stream.write(new Uint8Array(1000));
  await clock.pass(200);
  expect(clock.timers).toBe(1);
  stream.destroy();
  await clock.pass(0);
  expect(clock.timers).toBe(0);
});

test("a web stream whose reader cancels leaves no timer", async () => {
  const clock = fakeClock(START);
  const { readable, writable } = limitStream({ bytesPerSecond: 100, burst: 10, clock });
  const written = writable
    .getWriter()
    .write(new Uint8Array(1000))
    .catch(() => "cancelled");
  const reader = readable.getReader();
  await reader.read();
  await clock.pass(0);
  expect(clock.timers).toBe(1);
  await reader.cancel("enough");
  await clock.pass(0);
  expect([await written, clock.timers]).toEqual(["cancelled", 0]);
});

test.each([
  ["waits for its tokens", true],
  ["waits for a reader", false],
])("a writer that aborts ends a web stream at once, while a chunk %s", async (_, reads) => {
  const clock = fakeClock(START);
  const { readable, writable } = limitStream({ bytesPerSecond: 1, burst: 1, clock });
  const writer = writable.getWriter();
  const written = writer.write(new Uint8Array(1000)).catch((error: unknown) => error);
  const reader = readable.getReader();
  if (reads) await reader.read();
  await clock.pass(0);
  expect(clock.timers).toBe(reads ? 1 : 0);
  await writer.abort("enough");
  expect([await written, await reader.read().catch((error: unknown) => error)]).toEqual(["enough", "enough"]);
  await clock.pass(0);
  expect(clock.timers).toBe(0);
});

test("where a sink has no signal, as in older browsers, an abort ends a web stream after the chunk under way", async () => {
  vi.spyOn(WritableStreamDefaultController.prototype, "signal", "get").mockReturnValue(undefined as never);
  const clock = fakeClock(START);
  const { readable, writable } = limitStream({ bytesPerSecond: 1, burst: 1, clock });
  const [writer, reader] = [writable.getWriter(), readable.getReader()];
  const written = writer.write(new Uint8Array(2)).catch((error: unknown) => error);
  await reader.read();
  const aborted = writer.abort("enough");
  const read = Promise.all([reader.read(), reader.read().catch((error: unknown) => error)]);
  await clock.pass(SECOND);
  await aborted;
  expect([await written, (await read)[1]]).toEqual([undefined, "enough"]);
}, 5000);

test("a reader that cancels while nothing is written ends the source of the pipe", async () => {
  const reason = await new Promise((cancel) => {
    const source = new ReadableStream<Uint8Array>({ cancel });
    void source.pipeThrough(limitStream({ bytesPerSecond: 1 })).cancel("enough");
  });
  expect(reason).toBe("enough");
});

test("an abort at the end of a pipe ends it while a chunk waits, and leaves no timer", async () => {
  const clock = fakeClock(START);
  const source = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new Uint8Array(1000)) });
  const canceled = new AbortController();
  const piped = source
    .pipeThrough(limitStream({ bytesPerSecond: 1, burst: 1, clock }))
    .pipeTo(new WritableStream(), { signal: canceled.signal })
    .catch(({ name }: Error) => name);
  await clock.pass(2 * SECOND);
  canceled.abort();
  expect(await piped).toBe("AbortError");
  await clock.pass(0);
  expect(clock.timers).toBe(0);
});

test("chunks of another realm pass, whatever kind of bytes they are", async () => {
  const kinds = [
    "new ArrayBuffer(3)",
    "new SharedArrayBuffer(3)",
    "new Uint8Array(3)",
    "new DataView(new ArrayBuffer(3))",
  ];
  const chunks = kinds.map((kind) => there<Uint8Array>(kind));
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const out = await new Response(source.pipeThrough(limitStream({ bytesPerSecond: 1e6 }))).arrayBuffer();
  expect(out.byteLength).toBe(12);
});
