/** The store over a host's transaction: what it reads, what it writes, and how it reports what it finds. */
import { expect, test } from "vitest";
import { defineLimits, MINUTE, SECOND, type State } from "../src/index.ts";
import { Limit, type Transaction, transactional } from "../src/stores/index.ts";
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

test("a grant is one write, with its expiry; denials, checks and reads write nothing", async () => {
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

test("reset deletes every shard", async () => {
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
])("%j is not a state: an error with its identity, never a fresh key", async (corrupt) => {
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
    expect((d.cause as Error).message).toMatch(
      /must be \{ value, ts \}, or null if nothing is; got (undefined|"6"|5|an object|an array)$/,
    );
    expect((d.cause as { identity: string }).identity).toMatch(identity);
    await expect(limits.getValue(name, { key: "k" })).rejects.toMatchObject({ code: "TIDEGATE_STORE" });
  }
  expect(sets).toEqual([]);
});

test.each<[string, (body: (states: Transaction) => Promise<unknown>, states: Transaction) => unknown]>([
  ["does not return its result", async (body, states) => void (await body(states))],
  ["neither awaits nor returns it", (body, states) => void body(states)],
  ["returns something else", async (body, states) => [await body(states)]],
  ["does not call it", async () => undefined],
])("a transaction that %s is named: decisions would be undefined", async (_, transaction) => {
  const states: Transaction = { get: () => null, set: () => undefined, delete: () => undefined };
  const store = transactional({ name: "rows", transaction: (body) => transaction(body, states) as never });
  const limits = defineLimits({ one: bucket }, { store, log: false });
  const { ok, degraded, cause } = await limits.limit("one", { key: "k" });
  expect([ok, degraded, (cause as Error).message]).toEqual([
    false,
    true,
    'rows: take of "one:k" failed: `transaction` must call its argument, and return what that returns',
  ]);
  await expect(limits.getValue("one", { key: "k" })).rejects.toThrow("return what that returns");
});

test("uses its own clock if none is passed, which must return a number", async () => {
  const clocks: [unknown, boolean][] = [
    [5000, true],
    [5000.7, true],
    [null, false],
    ["5000", false],
    [Number.NaN, false],
    [-1, false],
  ];
  for (const [now, sound] of clocks) {
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

test("its random number picks the shards: the same numbers give the same states", async () => {
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

/** A host's transaction: every operation takes another number of turns, and calls are not isolated. */
function slow() {
  const states = new Map<string, State>();
  let operations = 0;
  const turn = async (): Promise<void> => {
    for (let i = (operations++ * 7) % 5; i >= 0; i--) await Promise.resolve();
  };
  const tx: Transaction = {
    get: (id) => turn().then(() => states.get(id) ?? null),
    set: (id, state) => turn().then(() => void states.set(id, state)),
    delete: (id) => turn().then(() => void states.delete(id)),
  };
  return { states, tx };
}

const configs = { one: bucket, parts: { ...bucket, shards: 5 }, other: bucket };
const granted = (all: readonly { ok: boolean }[]): number => all.filter(({ ok }) => ok).length;

test.each(["one", "parts"] as const)(
  "parallel calls on %s in one transaction grant exactly its tokens",
  async (name) => {
    const { tx } = slow();
    const limits = defineLimits(configs, { store: transactional({ name: "tx", transaction: (body) => body(tx) }) });
    const take = () => limits.limit(name, { key: "k" });
    expect(granted(await Promise.all(Array.from({ length: 40 }, take)))).toBe(10);
  },
);

test("stores and limiters within one handle take turns; limitAll in any order takes from all or none", async () => {
  const { tx, states } = slow();
  const limiter = () =>
    defineLimits(configs, {
      store: transactional({ name: "tx", transaction: (body) => body(tx), within: states }),
      now: () => 5000,
    });
  const [a, b] = [limiter(), limiter()];
  const both = [
    { name: "one", key: "k" },
    { name: "other", key: "k" },
  ] as const;
  const calls = Array.from({ length: 8 }, () => [
    a.limitAll(both),
    b.limitAll([...both].reverse()),
    a.limit("one", { key: "k" }),
    b.limit("other", { key: "k" }),
  ]);
  const answers = await Promise.all(calls.map((some) => Promise.all(some)));
  const taken = [0, 1, 2, 3].map((i) => granted(answers.map((some) => some[i] as { ok: boolean })));
  const pairs = (taken[0] as number) + (taken[1] as number);
  expect([pairs + (taken[2] as number), pairs + (taken[3] as number)]).toEqual([10, 10]);
  expect([...states.values()].map(({ value }) => value)).toEqual([0, 0]);
});

test("within a handle a call has no deadline, and an error rejects", async () => {
  // A conflict, which the host finds in `cause` to run its transaction again.
  const cause = Object.assign(new Error("gone"), { code: "40001" });
  const store = transactional({ name: "tx", transaction: () => Promise.reject(cause), within: {} });
  expect(store.inTransaction).toBe(true);
  await expect(defineLimits({ one: bucket }, { store }).limit("one")).rejects.toMatchObject({
    code: "TIDEGATE_STORE",
    message: 'tx: take of "one" failed: gone',
    cause,
  });
  expect(transactional({ name: "tx", transaction: () => Promise.reject(new Error()) }).inTransaction).toBeUndefined();
});

test("a call that waits until its deadline has passed begins no transaction", async () => {
  let began = 0;
  let end = (): void => {};
  const store = transactional({
    name: "tx",
    transaction: async (body) => {
      began++;
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      return body(slow().tx);
    },
  });
  const call = { op: "take", limit: new Limit("one", bucket), key: "k", count: 1, reserve: false } as const;
  const first = store.decide(call, 5000);
  const late = store.decide(call, 5000, { at: performance.now() - 1 });
  end();
  expect((await first).ok).toBe(true);
  await expect(late).rejects.toMatchObject({
    code: "TIDEGATE_STORE",
    message: expect.stringContaining("the call was not sent"),
  });
  expect(began).toBe(1);
});

const HOUR = 60 * MINUTE;
test.each<[string, State[], State | null]>([
  ["none", [], null],
  ["one", [{ value: -2, ts: 7000 }], { value: -2, ts: 7000 }],
  ["ten that lack one each", Array(10).fill({ value: 9, ts: 7000 }), { value: 0, ts: 7000 }],
  [
    "two of different times",
    [
      { value: 8, ts: 7000 },
      { value: 5, ts: 4000 },
    ],
    { value: 3, ts: 7000 },
  ],
  [
    "one above the capacity",
    [
      { value: 12, ts: 7000 },
      { value: 4, ts: 7000 },
    ],
    { value: 4, ts: 7000 },
  ],
  [
    "one from a wrong clock",
    [
      { value: 0, ts: 7001 + HOUR },
      { value: 4, ts: 7000 },
    ],
    { value: 4, ts: 7000 },
  ],
  [
    "two from a wrong clock",
    [
      { value: 0, ts: 7001 + HOUR },
      { value: 4, ts: 9e12 },
    ],
    null,
  ],
])("several rows of one state, %s: the deficits of the rows add up", async (_what, stored, state) => {
  let joined: State | null | undefined;
  const store = transactional({
    name: "tx",
    transaction: (body) =>
      body({
        get: (_id, join) => {
          joined = join(stored);
          return joined;
        },
        set: () => {},
        delete: () => {},
      }),
  });
  await store.getValue(new Limit("one", bucket), "k", 7000);
  expect(joined).toEqual(state);
});

test("rows of one shard lack what they lack of the shard's part of the capacity", async () => {
  const store = transactional({
    name: "tx",
    transaction: (body) =>
      body({
        get: (_id, join) =>
          join([
            { value: 4, ts: 7000 },
            { value: 3, ts: 7000 },
          ]),
        set: () => {},
        delete: () => {},
      }),
  });
  // Each of the two shards holds 5 at most: 1 and 2 are lacking.
  expect(await store.getValue(new Limit("parts", { ...bucket, shards: 2 }), "k", 7000)).toEqual({ value: 4, ts: 7000 });
});

test("a wrong option throws an InputError that names it", () => {
  const sound = { name: "rows", transaction: () => Promise.reject(new Error()) };
  expect(() => transactional(null as never)).toThrow("`options` must be an object with name and transaction; got null");
  expect(() => transactional({ ...sound, name: 5 } as never)).toThrow("`name` must be a short name, for errors; got 5");
  expect(() => transactional({ name: "rows" } as never)).toThrow("`transaction` must be a function");
  expect(() => transactional({ ...sound, now: 5 } as never)).toThrow("`now` must be a function that returns ms; got 5");
  expect(() => transactional({ ...sound, within: 5 } as never)).toThrow(
    "`within` must be the handle of a transaction, an object; got 5",
  );
  expect(() => transactional({ ...sound, retries: 5 } as never)).toThrow(
    "`retries` must be absent: transactional has name",
  );
});
