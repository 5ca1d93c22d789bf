/** The queue of one process's calls on one identity. */
import { expect, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import { type Transaction, transactional } from "../src/stores/index.ts";
import { KeyedQueue } from "../src/stores/keyed-queue.ts";
import { bucket, table } from "./swap-table.ts";

/** A function that ends when the test ends it, and the order in which functions started. */
function bodies() {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const body = (name: string) => () => {
    begun.push(name);
    return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
  };
  return { begun, body, end: (name: string) => ends.get(name)?.() };
}

test("calls on one identity run sequentially, calls on others concurrently", async () => {
  const turns = new KeyedQueue();
  const { begun, body, end } = bodies();
  const first = turns.run(["a"], body("first"));
  const second = turns.run(["a"], body("second"));
  const other = turns.run(["b"], body("other"));
  expect(begun).toEqual(["first", "other"]);
  end("other");
  end("first");
  expect(await Promise.all([first, other])).toEqual(["first", "other"]);
  await vi.waitUntil(() => begun.includes("second"));
  end("second");
  expect(await second).toBe("second");
});

test("calls on several identities in opposite orders do not deadlock", async () => {
  const turns = new KeyedQueue();
  const order: string[] = [];
  const body = (name: string) => async () => {
    await Promise.resolve();
    order.push(name);
  };
  const ids = [["a", "b"], ["b", "a"], ["b", "c", "a"], ["c"], ["a", "a"]];
  await Promise.all(ids.map((of, i) => turns.run(of, body(`${i}`))));
  expect(order.toSorted()).toEqual(["0", "1", "2", "3", "4"]);
  expect(order.indexOf("0")).toBeLessThan(order.indexOf("1"));
  expect(order.indexOf("2")).toBeLessThan(order.indexOf("3"));
});

test("a call on two identities waits for the calls on both", async () => {
  const turns = new KeyedQueue();
  const { begun, body, end } = bodies();
  const one = turns.run(["a"], body("one"));
  const other = turns.run(["b"], body("other"));
  const both = turns.run(["a", "b"], body("both"));
  end("one");
  await one;
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(begun).toEqual(["one", "other"]);
  end("other");
  await other;
  await vi.waitUntil(() => begun.includes("both"));
  end("both");
  expect(await both).toBe("both");
});

test("a call that comes after the first has ended waits for the second", async () => {
  const turns = new KeyedQueue();
  const { begun, body, end } = bodies();
  const first = turns.run(["a"], body("first"));
  const second = turns.run(["a"], body("second"));
  end("first");
  await first;
  await vi.waitUntil(() => begun.includes("second"));
  const third = turns.run(["a"], body("third"));
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(begun).toEqual(["first", "second"]);
  end("second");
  await second;
  await vi.waitUntil(() => begun.includes("third"));
  end("third");
  expect(await third).toBe("third");
});

test("a rejected call does not affect the next", async () => {
  const turns = new KeyedQueue();
  const first = turns.run(["a"], () => Promise.reject(new Error("first")));
  const second = turns.run(["a"], async () => "second");
  await expect(first).rejects.toThrow("first");
  expect(await second).toBe("second");
});

test("a call whose deadline passes in the queue does not run", async () => {
  const turns = new KeyedQueue();
  const { begun, body, end } = bodies();
  const first = turns.run(["a"], body("first"));
  const late = turns.run(["a"], body("late"), { at: performance.now() - 1 });
  const next = turns.run(["a"], async () => "next", { at: performance.now() + 60_000 });
  end("first");
  await expect(late).rejects.toThrow("the call was not sent: its deadline passed");
  expect(await next).toBe("next");
  expect(await first).toBe("first");
  expect(begun).toEqual(["first"]);
});

test("a call that is made microseconds after one that never ends, with the same timeout, does not run", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const turns = new KeyedQueue();
  const { begun, body } = bodies();
  const now = performance.now();
  void turns.run(["a"], body("stuck"), { at: now + 250 });
  const late = turns.run(["a"], async () => begun.push("late"), { at: now + 250.02 });
  const ended = expect(late).rejects.toThrow("the call was not sent: its deadline passed");
  await vi.advanceTimersByTimeAsync(250);
  await ended;
  expect(begun).toEqual(["stuck"]);
});

test("a call that never ends blocks the queue until its deadline at most", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const turns = new KeyedQueue();
  const { begun, body, end } = bodies();
  const now = performance.now();
  void turns.run(["a"], body("stuck"), { at: now + 250 });
  void turns.run(["a"], body("next"), { at: now + 300 });
  await vi.advanceTimersByTimeAsync(249);
  expect(begun).toEqual(["stuck"]);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toEqual(["stuck", "next"]);
  end("next");
  await vi.advanceTimersByTimeAsync(0);
  void turns.run(["a"], body("after"), { at: now + 1000 });
  expect(begun).toEqual(["stuck", "next", "after"]);
  expect(vi.getTimerCount()).toBe(0);
});

test.each(["a transaction", "compare-and-swap"])(
  "a call that waits for an earlier one until its deadline fails alone, and the store has not failed: %s",
  async (kind) => {
    // Calls that a busy process makes ms apart would have deadlines of their own.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const get = (id: string) => (id.startsWith("held") ? new Promise<never>(() => {}) : null);
    const transaction: Transaction = { get, set: () => {}, delete: () => {} };
    const store =
      kind === "a transaction"
        ? transactional({ name: "rows", transaction: (body) => body(transaction) })
        : table({
            read: (ids) =>
              Promise.all(ids.map(async (id) => ({ value: (await get(id)) ?? undefined, version: undefined }))),
          }).store;
    const limits = defineLimits(
      { held: { ...bucket, timeout: 400 }, quick: { ...bucket, timeout: 20 } },
      { store, log: false },
    );
    const first = limits.limit("held", { key: "k" });
    // Its step has begun.
    await vi.advanceTimersByTimeAsync(0);
    const both = [
      { name: "held", key: "k" },
      { name: "quick", key: "k" },
    ] as const;
    // More than open the breaker.
    const all = Promise.all(Array.from({ length: 9 }, () => limits.limitAll(both)));
    await vi.advanceTimersByTimeAsync(20);
    for (const { decisions } of await all) {
      expect(decisions[0]?.cause).toMatchObject({ scope: "key", message: expect.stringContaining("was not sent") });
    }
    expect((await limits.limit("quick", { key: "other" })).degraded).toBeUndefined();
    await vi.advanceTimersByTimeAsync(380);
    expect((await first).cause).toMatchObject({
      scope: "store",
      message: expect.stringContaining("no answer within 400 ms"),
    });
  },
);

test.each([
  ["most of its time", "fails alone", 120, "key", "no answer in the time earlier calls left"],
  [
    "less than half of it",
    "is a failure of the store",
    20,
    "store",
    "`transaction` did not run its argument before the deadline",
  ],
] as const)("a call that waited for %s, and then has no answer, %s", async (_, _fails, waited, scope, why) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const transaction = () => new Promise<never>(() => {});
  const config = { ...bucket, timeout: 200 };
  const limits = defineLimits({ held: config }, { store: transactional({ name: "rows", transaction }), log: false });
  const first = limits.limit("held", { key: "k", config: { ...config, timeout: waited } });
  const second = limits.limit("held", { key: "k" });
  await vi.advanceTimersByTimeAsync(200);
  expect((await first).cause).toMatchObject({ scope: "store" });
  expect((await second).cause).toMatchObject({ scope, message: expect.stringContaining(why) });
});
