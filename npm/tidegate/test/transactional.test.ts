/** The store over a transaction of the host's own: what it reads, what it writes, and what it says of what it finds. */
import { expect, test } from "vitest";
import { defineLimits, MINUTE, SECOND, type State } from "../src/index.ts";
import { transactional } from "../src/store.ts";
import { fakeClock } from "../src/testing/index.ts";

const bucket = { kind: "token bucket", rate: 10, period: MINUTE } as const;

function rows() {
  const states = new Map<string, unknown>();
  const sets: [id: string, state: State, fullAt: number][] = [];
  const deleted: string[] = [];
  const store = transactional({
    name: "rows",
    transaction: (body) =>
      body({
        get: (id) => (states.has(id) ? states.get(id) : null) as State | null,
        set: (id, state, fullAt) => {
          sets.push([id, state, fullAt]);
          states.set(id, state);
        },
        delete: (id) => {
          deleted.push(id);
          states.delete(id);
        },
      }),
  });
  const clock = fakeClock(1_000_000);
  const configs = { one: bucket, parts: { ...bucket, shards: 2 }, other: bucket };
  return { states, sets, deleted, clock, limits: defineLimits(configs, { store, now: clock.now }) };
}

test("a grant is one write, with the time from which it may be dropped; denials, checks and reads are none", async () => {
  const { sets, limits, clock } = rows();
  await limits.limit("one", { key: "k", count: 4 });
  expect(sets).toEqual([["one:k", { value: 6, ts: 1_000_000 }, 1_000_000 + 24 * SECOND]]);
  clock.advance(3 * SECOND);
  await limits.limit("one", { key: "k", count: 7 });
  await limits.check("one", { key: "k" });
  await limits.limit("one", { key: "k", count: 0 });
  await limits.getValue("one", { key: "k" });
  await limits.give("one", { key: "fresh" });
  await limits.limitAll([
    { name: "one", key: "k" },
    { name: "other", count: 11 },
  ]);
  await limits.checkAll([{ name: "one", key: "k" }, { name: "parts" }]);
  await limits.limit("parts", { count: 10.5 });
  expect(sets).toHaveLength(1);
});

test("reset forgets every shard", async () => {
  const { deleted, limits } = rows();
  await limits.reset("parts", { key: "k" });
  await limits.reset("one");
  expect(deleted).toEqual(["parts/0:k", "parts/1:k", "one"]);
});

test.each<unknown>([
  undefined,
  "6",
  5,
  {},
  { value: 6 },
  { value: "6", ts: 1_000_000 },
  { value: Number.NaN, ts: 1_000_000 },
  { value: 6, ts: Number.POSITIVE_INFINITY },
  { value: 6, ts: null },
  [6, 1_000_000],
])("%j is no state: reported with its identity, never a fresh key", async (corrupt) => {
  const { states, sets, limits } = rows();
  states.set("one:k", corrupt);
  states.set("parts/0:k", corrupt);
  states.set("parts/1:k", corrupt);
  for (const [name, identity] of [
    ["one", "one:k"],
    ["parts", /^parts\/[01]:k$/],
  ] as const) {
    const d = await limits.limit(name, { key: "k" });
    expect(d).toMatchObject({ ok: false, degraded: true });
    expect(d.cause).toMatchObject({ code: "TIDEGATE_STORE", store: "rows" });
    expect((d.cause as { identity: string }).identity).toMatch(identity);
    await expect(limits.getValue(name, { key: "k" })).rejects.toMatchObject({ code: "TIDEGATE_STORE" });
  }
  expect(sets).toEqual([]);
});

test("a transaction that fails is a StoreError that keeps its cause", async () => {
  const cause = new Error("deadlock");
  const store = transactional({ name: "rows", transaction: () => Promise.reject(cause) });
  const d = await defineLimits({ one: bucket }, { store }).limit("one", { key: "k" });
  expect(d.cause).toMatchObject({ message: 'rows: take of "one:k" failed: deadlock', cause });
});

test("its own clock decides where none is passed, and must tell a number", async () => {
  const told: [unknown, boolean][] = [
    [5000, true],
    [5000.7, true],
    [null, false],
    ["5000", false],
    [Number.NaN, false],
    [-1, false],
  ];
  for (const [now, sound] of told) {
    const store = transactional({
      name: "rows",
      transaction: (body) => body({ get: () => null, set: () => {}, delete: () => {} }),
      now: () => now as number,
    });
    const d = await defineLimits({ one: bucket }, { store }).limit("one");
    if (sound) expect(d).toMatchObject({ ok: true, now: 5000, ts: 5000 });
    else
      expect(d.cause).toMatchObject({
        message: expect.stringContaining("`now` must be a number of ms since the Unix epoch"),
      });
  }
});

test("the shards that it looks at are those that its random number picks: the same numbers, the same states", async () => {
  async function run(): Promise<[string, State][]> {
    const states = new Map<string, State>();
    const draws = [0.1, 0.9, 0.5, 0.3];
    const store = transactional({
      name: "rows",
      transaction: (body) =>
        body({ get: (id) => states.get(id) ?? null, set: (id, state) => void states.set(id, state), delete: () => {} }),
      random: () => draws.shift() as number,
    });
    const limits = defineLimits({ parts: { ...bucket, shards: 8 } }, { store, now: () => 5000 });
    for (const count of [1, 0.25, 1, 0.5]) await limits.limit("parts", { count });
    expect(draws).toEqual([]);
    return [...states];
  }
  const first = await run();
  expect(first.length).toBeGreaterThan(1);
  expect(await run()).toEqual(first);
});

test("wrong options are named", () => {
  const sound = { name: "rows", transaction: () => Promise.reject(new Error()) };
  expect(() => transactional(null as never)).toThrow("`options` must be an object; got null");
  expect(() => transactional({ ...sound, name: 5 } as never)).toThrow("`name` must be a short name, for errors; got 5");
  expect(() => transactional({ name: "rows" } as never)).toThrow("`transaction` must be a function");
  expect(() => transactional({ ...sound, now: 5 } as never)).toThrow("`now` must be a function that tells ms; got 5");
  expect(() => transactional({ ...sound, retries: 5 } as never)).toThrow(
    "`retries` must be absent: transactional has name",
  );
});
