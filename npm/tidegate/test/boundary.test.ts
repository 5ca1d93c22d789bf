/** Any JavaScript value in any argument gives a decision or an InputError; a refused call changes no state. */
import { keyed } from "../src/limiter/options.ts";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { rateLimitHeaders } from "../src/http/index.ts";
import { type Config, type Decision, defineLimits, evaluate, jitter, memory, project } from "../src/index.ts";

const RUNS = 400;
const good: Config = { kind: "token bucket", rate: 10, period: 1000, maxReserved: 5 };
const own = Symbol("thrown by the caller's own getter");

class Odd {
  count = 1;
  valueOf(): number {
    return 1;
  }
}

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const throwing = (field: string): object =>
  Object.defineProperty({}, field, {
    enumerable: true,
    get: () => {
      throw own;
    },
  });

/** Has another value at each read. */
function fickle(): object {
  let i = 0;
  const answers = [1, "1", Number.NaN, null, -1, {}, undefined, 2];
  return new Proxy({}, { get: () => answers[i++ % answers.length], has: () => true });
}

/** How to create a value. fast-check inspects values, and some of these do not allow that. */
type Make = () => unknown;
const made = (arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<Make> => arbitrary.map((value) => () => value);

const special: fc.Arbitrary<Make> = fc.oneof(
  made(
    fc.constantFrom<unknown>(
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      -0,
      -1,
      0.1,
      1e308,
      2 ** 53,
      2 ** 53 + 2,
      "1",
      "",
      1n,
      -1n,
      null,
      undefined,
      true,
      "__proto__",
      "constructor",
      "toString",
      "chat",
      "token bucket",
      "\ud800",
      "x".repeat(1025),
    ),
  ),
  fc.constantFrom<Make>(
    () => ({ valueOf: () => 1 }),
    () => ({ toString: () => "chat" }),
    () => ({ [Symbol.toPrimitive]: () => 1 }),
    () => new Odd(),
    () => Object.create(null),
    () => JSON.parse('{"__proto__": {"count": 1}, "constructor": 1}'),
    () => Symbol("s"),
    () => () => 1,
    () => new Date(0),
    () => new Map(),
    () => [],
    () => [1],
    () => new Array(3),
    () => new Uint8Array(40),
    () => Promise.resolve(1),
    () => new Proxy({}, {}),
    () => new Proxy(() => 1, {}),
    fickle,
    revoked,
    () => throwing("kind"),
    () => throwing("key"),
    () => throwing("now"),
    () => throwing("value"),
    () => throwing("0"),
    () => "x".repeat(1 << 20),
    () => "\u20ac".repeat(1 << 18),
  ),
  made(fc.string({ unit: "binary", maxLength: 30 })),
  made(fc.double()),
  made(
    fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withTypedArray: true,
      withSparseArray: true,
      withBoxedValues: true,
    }),
  ),
);

/** Usually replaces one field of a valid value; otherwise the value itself. */
const spoilt = (sound: Record<string, unknown>): fc.Arbitrary<Make> =>
  fc.oneof(
    special,
    ...Object.keys(sound).map((field) => special.map((make) => () => ({ ...sound, [field]: make() }))),
    fc
      .tuple(fc.oneof(fc.string(), fc.constantFrom("cuont", "__proto__", "constructor", "toString")), special)
      .map(([field, make]) => () => {
        const value = make();
        return Object.defineProperty({ ...sound }, field, {
          value,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      }),
  );

const config = spoilt({ ...good, capacity: 10, shards: 1, onStoreError: "deny", timeout: 100 });
const options = spoilt({ key: "k", count: 1, reserve: false, throws: false, config: good });

function sound(value: unknown, path = "the answer"): void {
  if (typeof value === "number") expect(value, path).not.toBeNaN();
  else if (typeof value === "object" && value !== null) {
    for (const [field, inner] of Object.entries(value)) sound(inner, `${path}.${field}`);
  }
}

/** Allowed errors: an InputError, or whatever the caller's own objects throw. */
function refused(error: unknown): boolean {
  if (error === own) return true;
  if (error instanceof TypeError && /revoked|proxy|Proxy/.test(error.message) && /perform|revoked/.test(error.message))
    return true;
  const { code, field, rule, message } = error as {
    code?: unknown;
    field?: unknown;
    rule?: unknown;
    message?: unknown;
  };
  expect({ code, error }).toMatchObject({ code: "TIDEGATE_INPUT" });
  expect(typeof field).toBe("string");
  expect(message).toContain(`\`${String(field)}\` must be ${String(rule)}; got `);
  expect((message as string).length).toBeLessThan(2000);
  return true;
}

/** Calls it; if it is refused, the stored state must be unchanged. */
function probe(limits: ReturnType<typeof limiter>["limits"], body: () => unknown): void {
  limits.reset("chat", { key: "k" });
  limits.limit("chat", { key: "k", count: 3.25 });
  const before = limits.getValue("chat", { key: "k" });
  let answer: unknown;
  try {
    answer = body();
  } catch (error) {
    refused(error);
    expect(limits.getValue("chat", { key: "k" })).toEqual(before);
    return;
  }
  sound(answer);
  if (typeof answer === "object" && answer !== null && (answer as Decision).ok === false) {
    expect(limits.getValue("chat", { key: "k" })).toEqual(before);
  }
}

function limiter() {
  const store = memory();
  return { store, limits: defineLimits({ chat: good }, { store, now: () => 1_000_000 }) };
}

/** A value whose type is wrong for its place. */
const any = (value: unknown): never => value as never;
const of = (make: Make): never => make() as never;
const prototype = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));
afterEach(() => {
  expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype))).toBe(prototype);
  expect(Object.keys(Object.prototype)).toEqual([]);
});

test.each(["limit", "check", "give", "charge", "reset", "getValue"] as const)(
  "%s returns, or throws an InputError and changes nothing",
  (op) => {
    const { limits } = limiter();
    fc.assert(
      fc.property(special, options, (name, given) => {
        probe(limits, () => limits[op](of(name), of(given)));
        probe(limits, () => limits[op]("chat", of(given)));
      }),
      { numRuns: RUNS },
    );
  },
);

test("limitAll and checkAll return, or throw an InputError and change nothing", () => {
  const { limits } = limiter();
  const request = spoilt({ name: "chat", key: "k", count: 1, reserve: false, config: good });
  const requests = fc.oneof(
    special,
    fc.array(request, { maxLength: 4 }).map((makes) => () => makes.map((make) => make())),
  );
  fc.assert(
    fc.property(requests, request, (several, one) => {
      probe(limits, () => limits.limitAll(of(several)));
      probe(limits, () => limits.checkAll(of(several)));
      // The first request takes nothing if the second is refused.
      probe(limits, () => limits.limitAll([{ name: "chat", key: "k", count: 1 }, of(one)]));
    }),
    { numRuns: RUNS },
  );
});

test("defineLimits returns a limiter or throws an InputError", () => {
  const { limits } = limiter();
  const settings = spoilt({ store: memory(), now: () => 1_000_000, onStoreError: "deny", timeout: 5 });
  fc.assert(
    fc.property(special, config, settings, fc.string(), (all, one, given, name) => {
      probe(limits, () => defineLimits(of(all)) && undefined);
      probe(limits, () => defineLimits({ [name]: of(one) }) && undefined);
      probe(limits, () => defineLimits({ chat: of(one) }) && undefined);
      probe(limits, () => defineLimits({ chat: good }, of(given)) && undefined);
    }),
    { numRuns: RUNS },
  );
});

test("a clock that returns any value gives a decision or an InputError", () => {
  const { limits } = limiter();
  fc.assert(
    fc.property(special, (time) => {
      const other = defineLimits({ chat: good }, { now: () => of(time) });
      probe(limits, () => other.limit("chat"));
      probe(limits, () => other.getValue("chat"));
      probe(limits, () => other.limitAll([{ name: "chat" }]));
    }),
    { numRuns: RUNS },
  );
});

test("evaluate and project return a state or throw an InputError", () => {
  const { limits } = limiter();
  const state = fc.oneof(
    made(fc.constant(null)),
    spoilt({ value: 5, ts: 1000 }),
    made(fc.record({ value: fc.double(), ts: fc.double() })),
  );
  fc.assert(
    fc.property(state, config, spoilt({ now: 1000, count: 1, reserve: false }), special, (own, one, given, now) => {
      probe(limits, () => evaluate(of(own), of(one), of(given)));
      probe(limits, () => evaluate(of(own), good, { now: 1000 }));
      probe(limits, () => evaluate(null, good, of(given)));
      probe(limits, () => project(of(own), of(one), of(now)));
      probe(limits, () => project(of(own), good, 1000));
    }),
    { numRuns: RUNS },
  );
});

test("memory and jitter return what they document or throw an InputError", () => {
  const { limits } = limiter();
  const decision = spoilt({ retryAt: 2000, retryAfter: 1000 });
  fc.assert(
    fc.property(
      spoilt({ maxKeys: 10, restore: undefined }),
      decision,
      spoilt({ key: "k", fraction: 0.5 }),
      (given, denied, chosen) => {
        probe(limits, () => memory(of(given)).stats());
        probe(limits, () => jitter(of(denied), of(chosen)));
        probe(limits, () => jitter({ retryAt: 2000, retryAfter: 1000 }, of(chosen)));
        probe(limits, () => jitter(of(denied), { key: "k" }));
      },
    ),
    { numRuns: RUNS },
  );
});

test("names of Object.prototype's members are ordinary names, keys and fields", () => {
  const names = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"];
  const limits = defineLimits(Object.fromEntries(names.map((name) => [name, { ...good, rate: 1 }])), {
    now: () => 1000,
  });
  for (const name of names) {
    for (const key of [undefined, ...names]) {
      expect(limits.limit(name, keyed(key)).ok, `${name} ${key}`).toBe(true);
      expect(limits.limit(name, keyed(key)).ok, `${name} ${key}`).toBe(false);
    }
  }
  const bare = defineLimits({ chat: good });
  for (const name of names) {
    expect(() => bare.limit(any(name))).toThrow(/`name` must be one of the limits defined: "chat"; got /);
    const extra = Object.defineProperty({ ...good }, name, { value: 1, enumerable: true });
    expect(() => defineLimits({ chat: extra })).toThrow(`\`${name}\` must be absent: a token bucket has kind, rate`);
    const option = Object.defineProperty({ key: "k" }, name, { value: 1, enumerable: true });
    expect(() => bare.limit("chat", option)).toThrow(`\`${name}\` must be absent: limit has key, count`);
  }
});

test("a field that another library gives every object is no option, and no limit", () => {
  const use = () => {
    const limits = defineLimits({ chat: good }, { store: memory({}), now: () => 1000 });
    return [limits.names, rateLimitHeaders(limits.limit("chat", { key: "k" }), {})];
  };
  const expected = use();
  Object.defineProperty(Object.prototype, "extended", { value: () => {}, enumerable: true, configurable: true });
  let got: unknown;
  try {
    got = use();
  } catch (error) {
    got = error;
  }
  Reflect.deleteProperty(Object.prototype, "extended");
  expect(got).toEqual(expected);
});

test("defaults are stored in the limit: the capacity is the rate, and there is one shard", () => {
  const bucket = { kind: "token bucket", rate: 7, period: 1000 } as const;
  const limits = defineLimits({ open: bucket, stated: { ...bucket, capacity: 3, maxReserved: 2 } });
  expect(limits.limit("open").limit).toBe(7);
  expect(limits.getValue("open").config).toEqual({ ...bucket, capacity: 7, shards: 1 });
  expect(limits.limit("stated").limit).toBe(3);
  expect(limits.getValue("stated").config).toEqual({ ...bucket, capacity: 3, maxReserved: 2, shards: 1 });
});

test.each([
  ["a Map", new Map([["maxKeys", 5]]), "[object Map]"],
  ["a Date", new Date(0), "[object Date]"],
  ["a URL", new URL("redis://app:hunter2@localhost"), "[object URL]"],
  ["an array", [], "an array"],
  ["a promise", Promise.resolve({}), "a promise; `await` it first"],
])("%s in place of options throws: none of its fields would be read", (_, given, got) => {
  const limits = defineLimits({ chat: good });
  expect(() => memory(any(given))).toThrow(`\`options\` must be an object with any of maxKeys, restore; got ${got}`);
  expect(() => defineLimits({ chat: good }, any(given))).toThrow(`must be an object, such as { store }; got ${got}`);
  expect(() => limits.limitMany("chat", ["k"], any(given))).toThrow(`such as { count }; got ${got}`);
  expect(limits.check("chat", { key: "k" }).remaining).toBe(limits.check("chat", { key: "k" }).limit - 1);
});

test("a misspelt option throws with its name", () => {
  const { limits } = limiter();
  expect(() => limits.limit("chat", any({ key: "k", cuont: 5 }))).toThrow(
    "`cuont` must be absent: limit has key, count, reserve, throws, config; got 5",
  );
  expect(() => limits.give("chat", any({ reserve: true }))).toThrow(
    "`reserve` must be absent: give has key, count, config; got true",
  );
  expect(() => limits.limitAll([any({ name: "chat", cost: 2 })])).toThrow(
    "`cost` must be absent: a request has name, key",
  );
  expect(() => memory(any({ maxkeys: 5 }))).toThrow("`maxkeys` must be absent: memory has maxKeys, restore; got 5");
  expect(() => defineLimits({ chat: good }, any({ clock: Date.now }))).toThrow(
    "`clock` must be absent: defineLimits has store",
  );
});
