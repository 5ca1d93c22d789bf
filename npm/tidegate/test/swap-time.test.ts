/** Deadlines and pauses of atomic steps by compare-and-swap. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import { stoppingClock } from "./stopping-clock.ts";
import { bucket, call, limit, NOW, other, table } from "./swap-table.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout", "Date"] });
  vi.spyOn(Math, "random").mockReturnValue(0.5);
});
const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What came of a promise, once that much time has passed. */
async function within(ms: number, some: Promise<unknown>): Promise<unknown> {
  const result = some.then(
    () => "done",
    (error: Error) => error.message,
  );
  await vi.advanceTimersByTimeAsync(ms);
  return Promise.race([result, Promise.resolve("waits")]);
}

test("a call whose deadline has passed is not sent; those of the same step are", async () => {
  const { store, reads } = table();
  const late = store.decide(call(), NOW, { at: performance.now() });
  const next = store.decide(call(), NOW, { at: performance.now() + 1 });
  await expect(late).rejects.toThrow("the call was not sent: its deadline passed");
  expect((await next).value).toBe(9);
  await expect(store.decide(call(), NOW, { at: performance.now() - 1 })).rejects.toThrow("not sent");
  const both = [call(), { ...call(), limit: other }];
  await expect(store.decideAll(both, NOW, { at: performance.now() })).rejects.toThrow("not sent");
  expect(reads).toHaveLength(1);
});

test("nothing is taken for a call whose deadline passes before the write; the others of its step are decided", async () => {
  const { store, rows, database } = table();
  const { swap } = database;
  // A server that compares its clock when it writes: 20 ms after it is sent, and later 1 ms.
  let ms = 20;
  database.swap = async (changes, times) => {
    await after(ms);
    ms = 1;
    return performance.now() < times.first && swap(changes, times);
  };
  const began = performance.now();
  const [soon, later] = [20, 1000].map((deadline) => store.decide(call(), NOW, { at: began + deadline }));
  const ended = Promise.allSettled([soon, later]);
  await vi.advanceTimersByTimeAsync(100);
  expect(await ended).toMatchObject([{ status: "rejected" }, { value: { ok: true, value: 9 } }]);
  expect(rows.get("one:k")).toBe(`9 ${NOW}`);
});

test("a burst whose last steps begin too late for an answer does not count as a failure of the server", async () => {
  const { store, database } = table();
  const { read } = database;
  database.read = (ids, until) => after(60).then(() => read(ids, until));
  const limits = defineLimits({ api: { ...bucket, timeout: 100 } }, { store, log: false });
  const calls = Array.from({ length: 200 }, (_, i) => limits.limit("api", { key: `${i}` }));
  await vi.advanceTimersByTimeAsync(200);
  const decisions = await Promise.all(calls);
  const late = decisions.filter(({ degraded }) => degraded === true);
  // The first 128 steps are under way at the same time.
  expect(late).toHaveLength(200 - 128);
  for (const { cause } of late) expect(cause).toMatchObject({ scope: "key" });
  const next = limits.limit("api", { key: "next" });
  await vi.advanceTimersByTimeAsync(60);
  expect((await next).degraded).toBeUndefined();
});

test.each([
  [60, 300],
  [100, 40],
])(
  "a busy key behind a network of %i ms grants at least %i of 300 requests within 250 ms each",
  async (trip, least) => {
    const { store, database } = table();
    const { read, swap } = database;
    database.read = (ids, until) => after(trip).then(() => read(ids, until));
    // The server refuses what arrives after the first deadline.
    database.swap = async (changes, times) => {
      await after(trip / 2);
      const written = performance.now() < times.first && (await swap(changes, times));
      return after(trip / 2).then(() => written);
    };
    const limits = defineLimits({ api: { ...bucket, rate: 1e6, timeout: 250 } }, { store, log: false });
    const calls: Promise<boolean>[] = [];
    for (let i = 0; i < 300; i++) {
      calls.push(limits.limit("api", { key: "busy" }).then(({ ok }) => ok));
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(500);
    expect((await Promise.all(calls)).filter(Boolean).length).toBeGreaterThanOrEqual(least);
  },
);

test.each([
  [10, 5, 300, 1000],
  [10, 5, 150, 1000],
  // A network of 100 ms: 128 calls every 200 ms. Those of a burst end at one time.
  [Infinity, 100, 250, 640],
])(
  "a server that gets more calls than it can carry still answers as many as it can: %i connections, %i ms for each statement, a timeout of %i ms",
  async (connections, ms, timeout, most) => {
    const { store, database } = table();
    const { read, swap } = database;
    let free = connections;
    const waiting: (() => void)[] = [];
    async function send<T>(statement: () => Promise<T>): Promise<T> {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      await after(ms);
      (waiting.shift() ?? (() => free++))();
      return statement();
    }
    database.read = (ids, until) => send(() => read(ids, until));
    database.swap = (changes, times) => send(async () => performance.now() < times.first && swap(changes, times));
    const limits = defineLimits({ api: { ...bucket, timeout } }, { store, log: false });
    const calls: Promise<boolean>[] = [];
    for (let at = 0; at < 1000; at++) {
      for (let i = at === 0 ? 500 : 2; i > 0; i--)
        calls.push(limits.limit("api", { key: `${at}.${i}` }).then(({ ok }) => ok));
      await vi.advanceTimersByTimeAsync(1);
    }
    await vi.advanceTimersByTimeAsync(500);
    expect((await Promise.all(calls)).filter(Boolean).length).toBeGreaterThan(0.95 * most);
  },
);

/** A store whose server takes so many ms for each trip, and none before it is connected. */
function served(connecting: number, times: { ms: number }) {
  const { store, database } = table();
  const { read, swap } = database;
  const began = performance.now();
  const trip = () => after(Math.max(times.ms, began + connecting - performance.now()));
  database.read = (ids, until) => trip().then(() => read(ids, until));
  database.swap = (changes, until) => trip().then(() => swap(changes, until));
  return defineLimits({ api: { ...bucket, timeout: 250 } }, { store, log: false });
}

test.each([
  ["the first, whose reads wait 150 ms for connections", "limit", 0, 150],
  ["the first, of calls that write nothing", "check", 0, 150],
  ["one a minute after calls that a slow server answered in 240 ms", "limit", 240, 0],
] as const)(
  "all calls of a burst that a fast server can carry are answered: %s",
  async (_, operation, slow, connecting) => {
    const times = { ms: slow / 2 };
    const limits = served(connecting, times);
    const burst = async (count: number) => {
      const calls = Array.from({ length: count }, (_, i) => limits[operation]("api", { key: `${count}.${i}` }));
      await vi.advanceTimersByTimeAsync(250);
      return (await Promise.all(calls)).filter(({ ok }) => ok).length;
    };
    if (slow > 0) expect([await burst(2), await burst(2)]).toEqual([2, 2]);
    times.ms = 1;
    await vi.advanceTimersByTimeAsync(slow > 0 ? 60_000 : 0);
    expect(await burst(500)).toBe(500);
  },
);

test("calls on two busy keys that came while the process connected are answered", async () => {
  const limits = served(100, { ms: 1 });
  const calls: Promise<boolean>[] = [];
  for (let i = 0; i < 20; i++) {
    for (const key of ["a", "b"]) calls.push(limits.limit("api", { key, count: 0.1 }).then(({ ok }) => ok));
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(await Promise.all(calls)).not.toContain(false);
});

test("a server that answers none of a burst has failed", async () => {
  const { store, database } = table();
  database.read = () => new Promise(() => {});
  const limits = defineLimits({ api: { ...bucket, timeout: 100 } }, { store, log: false });
  const calls = Array.from({ length: 200 }, (_, i) => limits.limit("api", { key: `${i}` }));
  await vi.advanceTimersByTimeAsync(150);
  const scopes = (await Promise.all(calls)).map(({ cause }) => (cause as { scope: string }).scope);
  expect(scopes.filter((scope) => scope === "store")).toHaveLength(128);
  const next = await limits.limit("api", { key: "next" });
  expect((next.cause as Error).message).toContain("failed repeatedly");
});

test("nothing is sent for a call whose deadline passed while its step read", async () => {
  const { store, changes, database } = table();
  const { read } = database;
  database.read = (ids, until) => after(50).then(() => read(ids, until));
  const [soon, later] = [20, 1000].map((ms) => store.decide(call(), NOW, { at: performance.now() + ms }));
  const ended = Promise.allSettled([soon, later]);
  await vi.advanceTimersByTimeAsync(200);
  expect(await ended).toMatchObject([{ status: "rejected" }, { value: { ok: true, value: 9 } }]);
  expect(changes).toHaveLength(1);
});

test("a step ends at the latest of its deadlines, and what it reads later writes nothing", async () => {
  const { store, changes, database } = table();
  const { read } = database;
  database.read = (ids, until) => after(50).then(() => read(ids, until));
  const began = performance.now();
  const calls = Promise.allSettled([20, 10].map((ms) => store.decide(call(), NOW, { at: began + ms })));
  expect(await within(19, calls)).toBe("waits");
  await vi.advanceTimersByTimeAsync(1);
  const error = { reason: { message: 'rows: take of "one:k" failed: no answer within 20 ms' } };
  expect(await calls).toMatchObject([error, error]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(changes).toEqual([]);
});

test.each([
  [10_000, undefined],
  [300, 300],
])("a call without a deadline ends after %i ms where `stepTimeout` is %s", async (ms, stepTimeout) => {
  const { store } = table({
    read: () => new Promise(() => {}),
    ...(stepTimeout === undefined ? {} : { stepTimeout }),
  });
  const taken = store.decide(call(), NOW);
  expect(await within(ms - 1, taken)).toBe("waits");
  expect(await within(1, taken)).toContain(`no answer within ${ms} ms`);
  const patient = store.decide(call(), NOW, { at: performance.now() + 1e6 });
  expect(await within(ms, patient)).toContain(`no answer within ${ms} ms`);
});

test("pauses between attempts double up to 100 ms, and there is none that would end after the deadline", async () => {
  const at: number[] = [];
  const began = performance.now();
  const { store } = table({
    async swap() {
      at.push(performance.now() - began);
      return false;
    },
  });
  const taken = store.decide(call(), NOW, { at: began + 200 });
  // Half of 2, 4, 8, … and at most 100 ms, as the random number says.
  const attempts = [0, 1, 3, 7, 15, 31, 63, 113, 163];
  expect(await within(199, taken)).toContain(
    `not stored in ${attempts.length} attempts: the write was refused: others were faster, its deadline passed, or the server has no room`,
  );
  expect(at).toEqual(attempts);
});

test("a step that a busy process runs past the deadline is not written, and the message has the reason", async () => {
  const { store, changes, database } = table();
  const { read } = database;
  const began = performance.now();
  const now = vi.spyOn(performance, "now");
  // A client with synchronous statements keeps timers from running.
  database.read = (ids, until) => {
    now.mockReturnValue(began + 21);
    return read(ids, until);
  };
  const taken = store.decide(call(), NOW, { at: began + 20 });
  await expect(taken).rejects.toThrow(
    "not stored in 1 attempt: a deadline passed before the write, which was not sent",
  );
  expect(changes).toEqual([]);
});

test("a burst on which a slow process cannot decide in time is decided in parts, each stored before the deadline", async () => {
  const { store, changes, rows } = table();
  const began = performance.now();
  let ms = 0;
  vi.spyOn(performance, "now").mockImplementation(() => began + ms);
  const { evaluate } = limit;
  vi.spyOn(limit, "evaluate").mockImplementation((...args) => {
    // Twice for each call: on a full limit, which may never grant it, and on the state.
    ms += 0.5;
    return evaluate.apply(limit, args);
  });
  const calls = Array.from({ length: 100 }, () => store.decide(call("charge"), NOW, { at: began + 60 }));
  const ended = await Promise.allSettled(calls);
  const stored = ended.filter(({ status }) => status === "fulfilled").length;
  expect(stored).toBeGreaterThan(50);
  expect(rows.get("one:k")).toBe(`${10 - stored} ${NOW}`);
  // Those that were answered are the first ones, and each part took half of the time that was left.
  expect(ended.findIndex(({ status }) => status === "rejected")).toBe(stored);
  expect(changes.length).toBeLessThan(10);
});

test.each([
  ["", undefined],
  [", and where the database has a reason of its own", { read: new Error("paused"), write: new Error("paused") }],
])(
  "a call that others' writes have delayed ends with that reason, whatever its step does at the deadline%s",
  async (_, unanswered) => {
    const { store, database } = table(unanswered && { unanswered });
    const { swap, read } = database;
    let swaps = 0;
    database.swap = async (...step) => ++swaps > 1 && swap(...step);
    const began = performance.now();
    const [soon, later] = [1, 1000].map((ms) => store.decide(call(), NOW, { at: began + ms }));
    expect(await within(1, soon as Promise<unknown>)).toContain("not stored in 1 attempt");
    expect(await later).toMatchObject({ ok: true, value: 9 });
    swaps = 0;
    let reads = 0;
    database.read = (...step) => (++reads > 1 ? new Promise(() => {}) : read(...step));
    expect(await within(20, store.decide(call(), NOW, { at: performance.now() + 20 }))).toContain(
      "not stored in 1 attempt",
    );
  },
);

test("the last error of a busy database is in the message", async () => {
  const { store } = table({ swap: () => Promise.reject(new Error("locked")), busy: () => "database" });
  const taken = store.decide(call(), NOW, { at: performance.now() + 4 });
  expect(await within(4, taken)).toMatch(/not stored in [23] attempts: locked/);
});

test("a request that is aborted at the deadline hides no earlier cause", async () => {
  let reads = 0;
  const { store } = table({
    async read(_, until) {
      if (++reads === 1) throw new Error("throttled");
      vi.spyOn(performance, "now").mockReturnValue(until);
      throw new Error("aborted");
    },
    busy: (error) => ((error as Error).message === "throttled" ? "entries" : undefined),
  });
  const ended = store.decide(call(), NOW, { at: performance.now() + 50 }).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(100);
  expect(await ended).toMatchObject({
    scope: "key",
    message: expect.stringContaining("not stored in 1 attempt: throttled"),
  });
});

describe("a process that did not run past the deadline, and reads replies before its timers run,", () => {
  const { pass, stop } = stoppingClock(1_000_000);

  test("sends the calls that wait for the reply", async () => {
    const { store, database } = table();
    const { read } = database;
    let fail = (_: Error): void => {};
    database.read = () => new Promise((_, reject) => (fail = reject));
    const limits = defineLimits({ api: bucket }, { store, timeout: 250, log: false });
    const first = limits.limit("api");
    await pass(0);
    const waiting = limits.limit("api");
    await pass(249);
    stop(5000);
    database.read = read;
    fail(new Error("connection lost"));
    for (let i = 0; i < 10; i++) await vi.advanceTimersByTimeAsync(1);
    expect((await first).degraded).toBe(true);
    expect(await waiting).not.toHaveProperty("degraded");
  });

  test("sends those that wait for a place", async () => {
    const { store, database } = table();
    const { read } = database;
    const replies: (() => void)[] = [];
    database.read = (...step) => new Promise<void>((reply) => replies.push(reply)).then(() => read(...step));
    const limits = defineLimits({ api: bucket }, { store, timeout: 250, log: false });
    void limits.check("api");
    await pass(0);
    replies.pop()?.();
    const calls = Array.from({ length: 300 }, (_, i) => limits.check("api", { key: `${i}` }));
    await pass(0);
    await pass(249);
    stop(5000);
    for (let i = 0; i < 10; i++) {
      for (const reply of replies.splice(0)) reply();
      await pass(1);
    }
    expect((await Promise.all(calls)).filter(({ degraded }) => degraded)).toEqual([]);
  });

  test("tries again where others were faster", async () => {
    const { store, database } = table();
    const { swap } = database;
    let answer = (): void => {};
    let swaps = 0;
    database.swap = async (...step) => {
      if (++swaps > 1) return swap(...step);
      await new Promise<void>((done) => (answer = done));
      return false;
    };
    const limits = defineLimits({ api: bucket }, { store, timeout: 250, log: false });
    const decision = limits.limit("api");
    await pass(0);
    await pass(248);
    answer();
    await pass(0);
    stop(5000);
    for (let i = 0; i < 10; i++) await vi.advanceTimersByTimeAsync(1);
    expect(await decision).not.toHaveProperty("degraded");
  });
});
