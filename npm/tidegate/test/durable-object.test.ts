/** A Durable Object that fails, or gets more calls than it can carry out: they fail alone, and calls on other objects go on. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { defineLimits, HOUR } from "../src/index.ts";
import { durableObject, type ObjectStorage, TidegateObject } from "../src/stores/durable-object.ts";

const bucket = { kind: "token bucket", rate: 1000, period: HOUR } as const;
const configs = { one: bucket, parts: { ...bucket, shards: 7 } };
const overloaded = Object.assign(new Error("Durable Object is overloaded. Too many requests queued."), {
  overloaded: true,
});

beforeEach(() => void vi.useFakeTimers());

/** Objects in this process; one whose name begins with "hot" waits for `hot` before each call, and may be `instead`. */
function objects(hot: () => Promise<unknown> | undefined, instead?: TidegateObject) {
  const made = new Map<string, TidegateObject>(instead && [["hot", instead]]);
  const namespace = {
    [Symbol.toStringTag]: "DurableObjectNamespace",
    idFromName: (name: string) => name,
    get(name: string) {
      const object = made.get(name) ?? new TidegateObject({ id: name, storage: storage() }, { namespace });
      made.set(name, object);
      return {
        async handle(request: Parameters<TidegateObject["handle"]>[0]) {
          if (name.startsWith("hot")) await hot();
          return object.handle(request);
        },
      };
    },
  };
  // All in one of the groups that breakers are for: names of two letters whose codes differ by 64.
  const object = (_name: string, key: string | undefined, shard: number | undefined) => `${key}${shard ?? ""}`;
  return durableObject(namespace, { object });
}

function storage(): ObjectStorage {
  const values = new Map<string, unknown>();
  return {
    get: async (key) => values.get(key),
    put: async (entries) => Object.entries(entries).forEach(([key, bytes]) => void values.set(key, bytes)),
    getAlarm: async () => null,
    setAlarm: async () => {},
  } as Partial<ObjectStorage> as ObjectStorage;
}

/** A key whose object is in the same group as that of `hot`. */
const BESIDE = "hot".replace("o", String.fromCharCode("o".charCodeAt(0) + 64));

/** As workerd marks them. */
const own = {
  "is overloaded": overloaded,
  "was reset, as with a full storage": Object.assign(new Error("database or disk is full"), {
    durableObjectReset: true,
  }),
  "throws in a subclass": Object.assign(new Error("no tenant"), { remote: true }),
};

describe.each(Object.entries(own))("an object that %s", (_, error) => {
  test.each(["one", "parts"] as const)("rejects its own calls alone (%s)", async (name) => {
    const store = objects(() => Promise.reject(error));
    const limits = defineLimits(configs, { store, log: false });
    for (let i = 0; i < 10; i++) {
      const { cause } = await limits.limit(name, { key: "hot" });
      expect(cause).toMatchObject({ scope: "key", message: expect.stringContaining(error.message) });
    }
    expect(await limits.limit(name, { key: BESIDE })).toMatchObject({ ok: true });
  });
});

test("an object whose storage cannot be read rejects its own calls alone", async () => {
  const broken = { ...storage(), get: () => Promise.reject(new Error("internal error in storage")) };
  const hot = new TidegateObject({ id: "hot", storage: broken }, {});
  const limits = defineLimits(configs, { store: objects(() => undefined, hot), log: false });
  for (let i = 0; i < 10; i++) {
    const { cause } = await limits.limit("one", { key: "hot" });
    expect(cause).toMatchObject({ scope: "key", message: expect.stringContaining("internal error in storage") });
  }
  expect(await limits.limit("one", { key: BESIDE })).toMatchObject({ ok: true });
});

test("calls that wait at an object that answers others fail alone", async () => {
  let free = Promise.resolve();
  const slow = () => (free = free.then(() => new Promise((resolve) => setTimeout(resolve, 100))));
  const limits = defineLimits(configs, { store: objects(slow), log: false });
  const calls = Array.from({ length: 10 }, () => limits.limit("one", { key: "hot" }));
  await vi.advanceTimersByTimeAsync(250);
  const late = (await Promise.all(calls)).flatMap(({ cause }) => cause ?? []);
  expect(late).toEqual(Array(8).fill(expect.objectContaining({ scope: "key" })));
  expect(await limits.limit("one", { key: BESIDE })).toMatchObject({ ok: true });
});

test("calls at an object that answers none are an outage", async () => {
  const limits = defineLimits(configs, { store: objects(() => new Promise(() => {})), log: false });
  const calls = Array.from({ length: 10 }, () => limits.limit("one", { key: "hot" }));
  await vi.advanceTimersByTimeAsync(250);
  for (const { cause } of await Promise.all(calls)) expect(cause).toMatchObject({ scope: "store" });
});

test("shards of a key whose objects do not answer leave shards of other keys their decisions", async () => {
  const limits = defineLimits(configs, { store: objects(() => new Promise(() => {})), log: false });
  const calls = Array.from({ length: 10 }, () => limits.limit("parts", { key: "hot" }));
  await vi.advanceTimersByTimeAsync(250);
  for (const { cause } of await Promise.all(calls)) expect(cause).toMatchObject({ scope: "store" });
  expect((await limits.limit("parts", { key: "hot" })).cause).toMatchObject({
    message: expect.stringContaining("it has failed repeatedly"),
  });
  expect(await limits.limit("parts", { key: "calm" })).toMatchObject({ ok: true });
  // In the same group as that of the first shard, but of one object.
  expect(await limits.limit("one", { key: `${BESIDE}0` })).toMatchObject({ ok: true });
});

test("a subclass that does not return what super.handle returns is reported with the remedy", async () => {
  const silent = { idFromName: () => "id", get: () => ({ handle: async () => {} }) };
  const { cause } = await defineLimits(configs, { store: durableObject(silent), log: false }).limit("one");
  expect(String(cause)).toContain("`handle` must return what `super.handle` returns");
});

test("a call that an object does not run, as earlier calls took its time, fails alone", async () => {
  let go = (): void => {};
  const slow = new Promise<void>((resolve) => (go = resolve));
  const object = new TidegateObject({ id: "id", storage: { ...storage(), get: () => slow } }, {});
  const { kind, rate, period } = bucket;
  const call = { op: "take", name: "one", config: { kind, rate, period }, key: "k", count: 1, reserve: false } as const;
  const request = { operation: "decide", calls: [call], now: undefined, timeout: 100 } as const;
  const [first, second] = [object.handle(request), object.handle(request)];
  await vi.advanceTimersByTimeAsync(100);
  go();
  expect(await first).toHaveProperty("answer");
  expect(await second).toMatchObject({
    failure: { scope: "key", what: expect.stringContaining("its deadline passed") },
  });
  expect(await object.handle(request)).toHaveProperty("answer");
});
