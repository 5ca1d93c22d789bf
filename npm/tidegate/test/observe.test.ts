import { channel } from "node:diagnostics_channel";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { describe, expect, test, vi } from "vitest";
import { defineLimits, isRateLimitError, memory, MINUTE } from "../src/index.ts";
import { type DecisionEvent, metrics, observe, publish } from "../src/observe/index.ts";
import { Gate } from "../src/middleware/gate.ts";
import { definePolicies } from "../src/policies/index.ts";
import { fakeClock } from "../src/testing/clock.ts";
import { later } from "./middleware/later.ts";

const POLICIES = {
  api: { kind: "token bucket", rate: 2, period: MINUTE },
  all: { kind: "fixed window", rate: 3, period: MINUTE },
} as const;

function observed() {
  const events: DecisionEvent[] = [];
  const clock = fakeClock();
  const plain = defineLimits(POLICIES, { now: clock.now });
  const limits = observe(plain, (event) => void events.push(event));
  return { events, plain, limits };
}

describe("observe", () => {
  test("emits every decision once, and returns what the limiter does: synchronously, from the same state", () => {
    const { events, plain, limits } = observed();
    const decision = limits.limit("api", { key: "a" });
    expect(decision.remaining).toBe(1);
    expect(limits.check("api", { key: "a", count: 2 }).ok).toBe(false);
    limits.give("api", { key: "a" });
    limits.charge("api", { key: "a", count: 5 });
    limits.block("api", { key: "a", for: "1m" });
    const emitted = events.map(({ operation, name, key, count, decision }) => [
      operation,
      name,
      key,
      count,
      decision.ok,
    ]);
    expect(emitted).toEqual([
      ["limit", "api", "a", 1, true],
      ["check", "api", "a", 2, false],
      ["give", "api", "a", 1, true],
      ["charge", "api", "a", 5, true],
      ["block", "api", "a", 0, true],
    ]);
    expect(events[0]?.decision).toBe(decision);
    expect(limits.getValue("api", { key: "a" })).toEqual(plain.getValue("api", { key: "a" }));
    limits.reset("api", { key: "a" });
    expect(plain.getValue("api", { key: "a" }).value).toBe(2);
    expect(limits.store).toBe(plain.store);
  });

  test("limitAll emits one event per limit, each with the decision about all", () => {
    const { events, limits } = observed();
    const all = limits.limitAll([
      { name: "api", key: "a" },
      { name: "all", count: 4 },
    ]);
    expect(events.map(({ name, count, decision, all: whole }) => [name, count, decision.ok, whole === all])).toEqual([
      ["api", 1, true, true],
      ["all", 4, false, true],
    ]);
  });

  test("the event of a denial precedes its error; an invalid call emits no event", () => {
    const { events, limits } = observed();
    expect(() => limits.limit("api", { count: 3, throws: true })).toThrow(expect.toSatisfy(isRateLimitError));
    expect(events.map(({ decision }) => decision.ok)).toEqual([false]);
    expect(() => limits.limit("api", { count: Number.NaN })).toThrow("`count`");
    expect(() => limits.limit("api", { throws: 1 as never })).toThrow("`throws`");
    expect(events.length).toBe(1);
  });

  test("throws the store's own error of a denial, as the limiter itself does", () => {
    const store = Object.assign(memory(), { denied: (name: string) => new Error(`${name} is denied`) });
    const limits = observe(defineLimits(POLICIES, { store }), () => undefined);
    expect(() => limits.limit("api", { count: 3, throws: true })).toThrow("api is denied");
  });

  test("works on an asynchronous store, and in the middleware", async () => {
    const events: DecisionEvent[] = [];
    const limits = observe(defineLimits(POLICIES, { store: later() }), (event) => void events.push(event));
    expect((await limits.limit("api")).ok).toBe(true);
    await new Gate(limits, {
      limits: [
        { name: "api", key: "k" },
        { name: "all", key: false },
      ],
    }).admit({}, {});
    expect(events.map(({ operation, name }) => `${operation} ${name}`)).toEqual([
      "limit api",
      "limitAll api",
      "limitAll all",
    ]);
  });

  test("an event has what the call had, where the caller uses its object or list again before the answer", async () => {
    const events: DecisionEvent[] = [];
    const limits = observe(defineLimits(POLICIES, { store: later() }), (event) => void events.push(event));
    const options: { key: string; count?: number } = { key: "a" };
    const block = { key: "a", for: 1 };
    const requests = [{ name: "api", key: "a" } as const];
    const keys = ["a"];
    const answers = [
      limits.limit("api", options),
      limits.block("api", block),
      limits.limitAll(requests),
      limits.limitMany("api", keys),
    ];
    Object.assign(options, { key: "b", count: 2 });
    block.key = "b";
    requests.length = 0;
    keys.length = 0;
    await Promise.all(answers);
    expect(events.map(({ operation, key, count }) => `${operation} ${key} ${count}`).sort()).toEqual([
      "block a 0",
      "limit a 1",
      "limitAll a 1",
      "limitMany a 1",
    ]);
  });

  test("an observed limiter has every method, and can be observed again", () => {
    const { events, plain, limits } = observed();
    const again: string[] = [];
    const twice = observe(limits, ({ operation }) => void again.push(operation));
    twice.limit("api", { key: "a" });
    expect([events.length, again]).toEqual([1, ["limit"]]);
    expect(twice.getValue("api", { key: "a" }).value).toBe(1);
    // The class's own methods read private fields, which an object that inherits from a limiter lacks.
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(plain)))) {
      if (name !== "constructor") expect(twice[name as "limit"], name).not.toBe(value);
    }
    const many = (twice as never as { limitMany?(name: string, keys: string[]): { ok: boolean }[] }).limitMany?.(
      "api",
      ["b", "c"],
    );
    if (many !== undefined)
      expect([many.map(({ ok }) => ok), again]).toEqual([
        [true, true],
        ["limit", "limitMany", "limitMany"],
      ]);
  });

  test("a method of an observed limiter can be spied on", () => {
    const { limits } = observed();
    const spy = vi.spyOn(limits, "limit");
    expect(limits.limit("api").ok).toBe(true);
    expect(spy).toHaveBeenCalledOnce();
  });

  test("limitMany emits one event per key", () => {
    const { events, limits } = observed();
    limits.limitMany("api", ["b", "c"], { count: 2 });
    expect(events.map(({ operation, key, count }) => [operation, key, count])).toEqual([
      ["limitMany", "b", 2],
      ["limitMany", "c", 2],
    ]);
  });

  test("an observer that throws fails the call; the rejection of an asynchronous one is ignored", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    const limiter = defineLimits(POLICIES);
    expect(observe(limiter, async () => Promise.reject(new Error("no database"))).limit("api").ok).toBe(true);
    const throwing = observe(limiter, () => {
      throw new Error("no database");
    });
    expect(() => throwing.limit("api")).toThrow("no database");
    await new Promise(setImmediate);
    process.off("unhandledRejection", unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  test("refuses an observer that is not a function, and none", () => {
    expect(() => (observe as (limiter: object) => unknown)(defineLimits(POLICIES))).toThrow(
      "`observers` must be at least one function",
    );
    expect(() => observe(defineLimits(POLICIES), 1 as never)).toThrow(
      "`observers` must be functions of an event; got 1",
    );
  });
});

test("publishes to a channel only while it has subscribers", () => {
  const decisions = channel("tidegate:decision");
  const limits = observe(defineLimits(POLICIES), publish(decisions));
  const heard: unknown[] = [];
  const listener = (event: unknown): void => void heard.push(event);
  limits.limit("api");
  decisions.subscribe(listener);
  limits.limit("api");
  decisions.unsubscribe(listener);
  limits.limit("api");
  expect(heard).toEqual([expect.objectContaining({ operation: "limit", name: "api" })]);
});

test("OpenTelemetry's meter counts by limit and outcome, never by key, and by a bounded number of names", async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 });
  const meter = new MeterProvider({ readers: [reader] }).getMeter("tidegate");
  const store = memory({ maxKeys: 1 });
  const limits = observe(defineLimits(POLICIES, { store }), metrics(meter, { store }));
  for (let i = 0; i < 300; i++) limits.limit("api", { key: `client ${i}` });
  limits.limit("api", { key: "x", count: 2 });
  limits.limit("api", { key: "x", count: 2 });
  limits.limit("api", { count: 3 });
  for (let i = 0; i < 1050; i++) limits.limit(`made-up-${i}`, { config: POLICIES.api });
  await reader.forceFlush();
  const found = Object.fromEntries(
    (exporter.getMetrics()[0]?.scopeMetrics[0]?.metrics ?? []).map((metric) => [
      metric.descriptor.name,
      metric.dataPoints,
    ]),
  );
  const counted = (limit: string, outcome: string) =>
    found["tidegate.decisions"]?.find(
      ({ attributes }) => attributes["limit"] === limit && attributes["outcome"] === outcome,
    )?.value;
  expect([
    counted("api", "granted"),
    counted("api", "denied"),
    counted("api", "impossible"),
    counted("other", "granted"),
  ]).toEqual([301, 1, 1, 51]);
  expect(JSON.stringify(found)).not.toContain("client ");
  const boundaries = [0.1, 1, 5, 10, 60, 300, 3600, 86_400];
  expect(found["tidegate.wait"]?.[0]?.value).toMatchObject({ count: 1, buckets: { boundaries } });
  expect(found["tidegate.evictions"]?.[0]?.value).toBe(store.stats().evicted);
  expect(store.stats().evicted).toBeGreaterThan(0);
  await reader.shutdown();
});

test("metrics count each of the 101 limits of the largest policy document by its name, also after reloads renamed its rules", () => {
  const counted: unknown[] = [];
  const meter = {
    createCounter: () => ({ add: (_: number, attributes = {}) => void counted.push(attributes) }),
    createHistogram: () => ({ record: () => {} }),
    createObservableCounter: () => ({ addCallback: () => {} }),
  };
  const limit = { limit_keys: [], algorithm: "token_bucket", algorithm_config: { rps: 1, burst: 100 } } as const;
  const document = (version: number) => ({
    rules: Array.from({ length: 100 }, (_, i) => ({ name: `${i}-of-${version}`, ...limit })),
    fallback_limit: limit,
  });
  const policies = definePolicies(document(0));
  const limits = observe(policies.limiter, metrics(meter));
  const used: string[] = [];
  for (let version = 0; version < 9; version++) {
    policies.reload(document(version));
    for (const name of policies.names) {
      used.push(name);
      limits.limit(name, { config: policies.configOf(name) });
    }
  }
  expect(new Set(used).size).toBe(901);
  expect(counted).toEqual(used.map((limit) => expect.objectContaining({ limit })));
});

test("metrics have the wait of a denial in s, and none of a reservation", () => {
  const record = vi.fn();
  const meter = {
    createCounter: () => ({ add: () => {} }),
    createHistogram: () => ({ record }),
    createObservableCounter: () => ({ addCallback: () => {} }),
  };
  const slow = { kind: "token bucket", rate: 1, period: 2000 } as const;
  const limits = observe(defineLimits({ slow }, { now: () => 0 }), metrics(meter));
  limits.limit("slow", { reserve: true });
  expect(limits.limit("slow", { reserve: true }).reserved).toBe(true);
  limits.limit("slow");
  expect(record.mock.calls).toEqual([[4, { limit: "slow" }]]);
});

test("metrics count a denied limitAll for the limits that deny: the others granted nothing", () => {
  const counted: unknown[] = [];
  const meter = {
    createCounter: () => ({ add: (_: number, attributes = {}) => void counted.push(attributes) }),
    createHistogram: () => ({ record: () => {} }),
    createObservableCounter: () => ({ addCallback: () => {} }),
  };
  const limits = observe(defineLimits(POLICIES), metrics(meter));
  for (const operation of ["limitAll", "checkAll"] as const) {
    expect(limits[operation]([{ name: "api" }, { name: "all", count: 4 }]).ok).toBe(false);
  }
  expect(limits.limitAll([{ name: "api" }, { name: "all" }]).ok).toBe(true);
  const of = (limit: string, operation: string, outcome: string) => ({ limit, operation, outcome, degraded: false });
  expect(counted).toEqual([
    of("all", "limitAll", "impossible"),
    of("all", "checkAll", "impossible"),
    of("api", "limitAll", "granted"),
    of("all", "limitAll", "granted"),
  ]);
});
