/** A process that is busy for longer than the timeout, beside a store that answers in time. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import { Limit } from "../src/limit/limit.ts";
import { afterWaiting } from "../src/limit/monotonic.ts";
import { KeyError } from "../src/stores/failure.ts";
import { swapStore } from "../src/stores/swap.ts";
import { behind } from "./behind.ts";
import { table } from "./swap-table.ts";

let server: Server;
let socket: Socket;
/** Resolves when a server in this process has echoed one byte. */
let echo: () => Promise<void>;
beforeAll(async () => {
  server = createServer((peer) => peer.pipe(peer));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  echo = () => new Promise((resolve) => socket.write("x", () => socket.once("data", () => resolve())));
  await echo();
});
afterAll(() => {
  socket.destroy();
  server.close();
});

/** Occupies the process for so many ms. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test("a reply that arrives while the process is busy past the deadline is the decision", async () => {
  const store = behind(echo, "echo");
  const limits = defineLimits({ api: { kind: "token bucket", rate: 10, period: 1000 } }, { store, timeout: 500 });
  const sent = limits.limit("api");
  work(1000);
  expect(await sent).toMatchObject({ ok: true, remaining: 9 });
});

test("a busy entry is the cause, not the store, also where the process is busy past the deadline of its call", async () => {
  const { store, database } = table({ busy: () => "entries" });
  const limits = defineLimits(
    { api: { kind: "token bucket", rate: 10, period: 1000 } },
    { store, timeout: 200, log: false },
  );
  let writes = 0;
  database.swap = () => {
    if (++writes === 1) return Promise.reject(new Error("throttled"));
    work(230);
    return new Promise(() => {});
  };
  expect((await limits.limit("api")).cause).toMatchObject({
    scope: "key",
    message: expect.stringContaining("throttled"),
  });
});

test("a step of compare-and-swap ends with the reply, too", async () => {
  const store = swapStore<undefined>({
    name: "echo",
    read: () => echo().then(() => [{ value: undefined, version: undefined }]),
    decode: () => ({ value: 0, ts: 0 }),
    swap: () => Promise.resolve(true),
    stepTimeout: 500,
  });
  const limit = new Limit("api", { kind: "token bucket", rate: 10, period: 1000 });
  const step = store.getValue(limit, undefined, 0);
  // The step begins after the calls of this turn.
  await undefined;
  await undefined;
  work(1000);
  expect(await step).toMatchObject({ value: 10 });
});

test("a timer that fires early does not end a call before its deadline", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const clock = vi.spyOn(performance, "now").mockReturnValue(0);
  const late = vi.fn();
  afterWaiting(100, late);
  clock.mockReturnValue(99.3);
  vi.advanceTimersByTime(100);
  expect(late).not.toHaveBeenCalled();
  clock.mockReturnValue(100.3);
  vi.advanceTimersByTime(1);
  expect(late).toHaveBeenCalledOnce();
});

test("fake timers that do not move `performance`, as those of node:test, end a call at its deadline", async () => {
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] });
  const store = behind(() => new Promise<never>(() => {}), "silent");
  const limits = defineLimits(
    { api: { kind: "token bucket", rate: 10, period: 1000 } },
    { store, timeout: 500, log: false },
  );
  const decided = vi.fn();
  void Promise.resolve(limits.limit("api")).then(decided);
  await vi.advanceTimersByTimeAsync(499);
  expect(decided).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(decided).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ ok: false, degraded: true }));
});

test("a step of compare-and-swap whose process did not run past the deadline writes what it has read, and calls behind it are sent", async () => {
  const { store, database } = table();
  const { read } = database;
  const replies: (() => void)[] = [];
  database.read = (ids, until) => new Promise((resolve) => replies.push(() => resolve(read(ids, until))));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const clock = vi.spyOn(performance, "now").mockReturnValue(0);
  const lines: string[] = [];
  const log = { error: (line: string) => void lines.push(line), info: (line: string) => void lines.push(line) };
  const limits = defineLimits({ api: { kind: "token bucket", rate: 10, period: 1000 } }, { store, log });
  const first = limits.limit("api", { key: "k" });
  while (replies.length === 0) await undefined;
  const second = limits.limit("api", { key: "k" });
  const both = limits.limitAll([
    { name: "api", key: "k" },
    { name: "api", key: "l" },
  ]);
  vi.advanceTimersByTime(249);
  clock.mockReturnValue(5000);
  for (let i = 0; i < 10; i++) {
    replies.shift()?.();
    // The timers that were due come after the reply.
    await vi.advanceTimersByTimeAsync(1);
  }
  expect(await Promise.all([first, second, both])).toMatchObject([{ ok: true }, { ok: true }, { ok: true }]);
  expect(lines).toEqual([]);
});

test("a write that the store aborts after the process did not run is late for the reason that the store has", async () => {
  const { store, database } = table({ unanswered: { write: new KeyError("the client pauses", true) } });
  let out = false;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const clock = vi.spyOn(performance, "now").mockReturnValue(0);
  database.read = async () => {
    clock.mockReturnValue(100);
    return [{ value: undefined, version: undefined }];
  };
  database.swap = (_, { until }) =>
    new Promise((_, reject) => {
      out = true;
      afterWaiting(until - performance.now(), () => reject(new DOMException("Request aborted", "AbortError")));
    });
  const limits = defineLimits({ api: { kind: "token bucket", rate: 10, period: 1000 } }, { store, log: false });
  const decision = limits.limit("api");
  while (!out) await undefined;
  clock.mockReturnValue(5000);
  await vi.advanceTimersByTimeAsync(250);
  clock.mockReturnValue(5150);
  await vi.advanceTimersByTimeAsync(150);
  expect((await decision).cause).toMatchObject({ scope: "key", message: expect.stringContaining("the client pauses") });
});
