/** How the load of a server is known from trips of atomic steps by compare-and-swap, some of which wait. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import { stoppingClock } from "./stopping-clock.ts";
import { bucket, call, table } from "./swap-table.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout", "Date"] });
});
const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Limits on a server of which a read takes `read` ms, and a write what `write` says. */
function served(read: number, write: (id: string) => Promise<void>) {
  const { store, database } = table();
  const { read: load, swap } = database;
  database.read = (ids, until) => after(read).then(() => load(ids, until));
  // The server refuses what arrives after the first deadline.
  database.swap = async (changes, times) => {
    await write(changes[0]?.id ?? "");
    return performance.now() < times.first && swap(changes, times);
  };
  return defineLimits({ api: { ...bucket, rate: 1e6, timeout: 250 } }, { store, log: false });
}

/** Makes calls on these keys in each of so many ms, and returns how many were answered. */
async function answered(limits: ReturnType<typeof served>, ms: number, keysAt: (at: number) => string[]) {
  const calls: Promise<boolean>[] = [];
  for (let at = 0; at < ms; at++) {
    for (const key of keysAt(at)) calls.push(limits.limit("api", { key }).then(({ ok }) => ok));
    await vi.advanceTimersByTimeAsync(1);
  }
  await vi.advanceTimersByTimeAsync(500);
  return (await Promise.all(calls)).filter(Boolean).length;
}

test("writes that waited for a lock do not fail the calls on other keys, which wait for a place", async () => {
  const unlock = 200;
  const began = performance.now();
  const limits = served(10, (id) => after(id.includes("locked") ? began + unlock - performance.now() : 10));
  const many = (at: number) => Array.from({ length: at === 100 ? 400 : 6 }, (_, i) => `${at}.${i}`);
  const total = 20 + 300 * 6 + 400 - 6;
  expect(await answered(limits, 300, (at) => (at < 20 ? [`locked${at}`, ...many(at)] : many(at)))).toBe(total);
});

test("calls on busy keys, whose writes are slow and reads fast, have time enough", async () => {
  const limits = served(1, () => after(100));
  const keys = ["a", "b", "c"];
  const calls = await answered(limits, 600, (at) => keys.filter((_, i) => at % 20 === 7 * i));
  expect(calls).toBe(90);
});

test.each([
  ["of 10 ms", [10]],
  ["of 1 to 25 ms", [1, 6, 2, 25, 4, 1, 25, 16]],
])("a server whose writes, %s each, are more than it can carry still answers as many as it can", async (_, times) => {
  let free = 10;
  let writes = 0;
  const waiting: (() => void)[] = [];
  const limits = served(1, async () => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    await after(times[writes++ % times.length] as number);
    (waiting.shift() ?? (() => free++))();
  });
  const calls = await answered(limits, 1000, (at) =>
    Array.from({ length: at === 0 ? 500 : 2 }, (_, i) => `${at}.${i}`),
  );
  expect(calls).toBeGreaterThan(950);
});

test("calls that write nothing do not need the time of writes that ended long ago", async () => {
  const limits = served(1, () => after(240));
  const granted = async (op: "limit" | "check", count: number) => {
    const calls = Array.from({ length: count }, (_, i) => limits[op]("api", { key: `${i}` }));
    await vi.advanceTimersByTimeAsync(300);
    return (await Promise.all(calls)).filter(({ ok }) => ok).length;
  };
  expect([await granted("limit", 2), await granted("limit", 2)]).toEqual([2, 2]);
  expect([await granted("check", 500), await granted("check", 500)]).toEqual([500, 500]);
});

test("calls of a process that is too busy do not pile up: those whose deadlines have passed need no place", async () => {
  const { store, reads } = table();
  const late = Array.from({ length: 1000 }, (_, i) => ({ deadline: { at: performance.now() - 10 }, key: `${i}` }));
  let over = 0;
  const calls = late.map(({ key, deadline }) =>
    store.decide(call("take", key), undefined, deadline).catch(() => over++),
  );
  await vi.advanceTimersByTimeAsync(2);
  expect(over).toBe(1000);
  expect(reads).toEqual([]);
  await Promise.all(calls);
  expect((await store.decide(call(), undefined, { at: performance.now() + 10 })).ok).toBe(true);
});

describe("a client with synchronous statements, such as one of SQLite,", () => {
  const clock = stoppingClock(1_000_000);

  test("does not stop the process at each call while another process has locked the file: few calls go to it", async () => {
    let isLocked = false;
    const { store, database } = table({ busy: () => "database" });
    const { swap } = database;
    let locked = 0;
    database.swap = async (...step) => {
      if (!isLocked) return swap(...step);
      locked++;
      // What the client waits for the lock, which is less than a call waits.
      clock.stop(100);
      throw new Error("database is locked");
    };
    const limits = defineLimits({ api: { ...bucket, rate: 1e6 } }, { store, timeout: 250, log: false });
    const calls: Promise<{ ok: boolean }>[] = [];
    const began = clock.now;
    const until = async (ms: number) => {
      for (; clock.now < began + ms; await clock.pass(5)) {
        // One call in 5 ms; those that came while the process did not run are made together.
        while (calls.length < (clock.now - began) / 5) calls.push(limits.limit("api", { key: `${calls.length % 50}` }));
      }
    };
    await until(100);
    isLocked = true;
    await until(10_000);
    // Some 15 before five calls in a row have failed, then two for each probe, of which six fit into this time.
    expect(locked).toBeLessThan(50);
    isLocked = false;
    await until(20_000);
    expect(await calls.at(-1)).toMatchObject({ ok: true });
  });
});
