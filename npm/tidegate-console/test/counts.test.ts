import { type AsyncStore, type Config, defineLimits, type LimitRequest, MINUTE, memory, SECOND } from "tidegate";
import { observe } from "tidegate/observe";
import { definePolicies, keysOfPolicies } from "tidegate/policies";
import { expect, test } from "vitest";
import { heap } from "../../../tests/support/heap.ts";
import { Counts, policyText } from "../src/counts.ts";
import { ownKeys } from "../src/keys.ts";
import { SPAN } from "../src/wire.ts";

const START = 1_700_000_000_000;
const API: Config = { kind: "token bucket", rate: 1, period: MINUTE, capacity: 2 };

/** A limiter with counts, on a clock that the test sets. */
function counted<N extends string>(configs: Record<N, Config>, start = START) {
  const clock = { now: start };
  const now = () => clock.now;
  const plain = defineLimits(configs, { now });
  const counts = new Counts(ownKeys(plain as never), now);
  return { clock, counts, limits: observe(plain, counts.add) };
}

const sum = (numbers: readonly number[] = []): number => numbers.reduce((total, number) => total + number, 0);

test("grants and denials are counted by second", () => {
  const { clock, counts, limits } = counted({ api: API });
  for (let i = 0; i < 3; i++) limits.limit("api", { key: "ann" });
  clock.now += SECOND;
  limits.limit("api", { key: "ann" });
  const { limits: all } = counts.figures(0);
  expect(all).toHaveLength(1);
  expect(all[0]?.policy).toBe("token bucket: 1 per 1 min, capacity 2");
  expect(all[0]?.granted.slice(-3)).toEqual([0, 2, 0]);
  expect(all[0]?.denied.slice(-3)).toEqual([0, 1, 1]);
  expect([all[0]?.granted.length, sum(all[0]?.granted)]).toEqual([SPAN, 2]);
  expect(counts.figures(START / 1000 + 1).limits[0]?.denied).toEqual([1]);
});

test("a count is forgotten after ten minutes, and not before", () => {
  const { clock, counts, limits } = counted({ api: API });
  limits.limit("api", { key: "ann", count: 9 });
  clock.now += (SPAN - 1) * SECOND;
  expect(counts.figures(0).limits[0]?.denied[0]).toBe(1);
  clock.now += SECOND;
  expect(sum(counts.figures(0).limits[0]?.denied)).toBe(0);
  expect(counts.figures(0).top).toEqual([]);
  // The same place in the ring.
  limits.limit("api", { key: "bob", count: 9 });
  expect(counts.figures(0).limits[0]?.denied.at(-1)).toBe(1);
  expect(counts.figures(0).top.map(({ key }) => key)).toEqual(["bob"]);
});

test("the counts begin with the first decision where the console was made without a time, as in Workers", () => {
  const { clock, counts, limits } = counted({ api: API }, 0);
  clock.now = START;
  limits.limit("api", { key: "ann" });
  clock.now += MINUTE;
  expect(counts.since).toBe(START);
});

test("after a clock that stepped back, its second is read", () => {
  const { clock, counts, limits } = counted({ api: API });
  clock.now -= 5 * SECOND;
  limits.limit("api", { key: "ann" });
  expect(counts.figures(START / 1000)).toMatchObject({ now: START - 5 * SECOND, limits: [{ granted: [1] }] });
});

test("a key whose text cannot be made, as a client's may be, is shown as it is, and fails neither the denial nor the figures", () => {
  const now = () => START;
  const plain = defineLimits({ api: API }, { now });
  const text = (name: string, key: string) => `${name} ${decodeURIComponent(key)}`;
  const counts = new Counts({ ...ownKeys(plain as never), text }, now);
  const limits = observe(plain, counts.add);
  for (const key of ["%", "%20b"]) expect(limits.limit("api", { key, count: 9 }).ok).toBe(false);
  expect(counts.denials(0).denials.map(({ key }) => key)).toEqual(["%", "api  b"]);
  expect(counts.figures(0).top.map(({ key }) => key)).toEqual(["%", "api  b"]);
});

test("a policy rule in shadow mode is counted by what it decided", () => {
  const now = () => START;
  const rule = {
    name: "trial",
    limit_keys: [],
    algorithm: "token_bucket",
    algorithm_config: { rate: 1, period: "1m" },
  };
  const policies = definePolicies({ rules: [{ ...rule, shadow: true }] }, { now });
  const counts = new Counts(keysOfPolicies(policies), now);
  const limiter = observe(policies.limiter, counts.add);
  const taken = policies.select({}, {}, () => "user") as readonly LimitRequest<string>[];
  for (let i = 0; i < 3; i++) expect(limiter.limitAll(taken).ok).toBe(true);
  const [trial] = counts.figures(0).limits;
  expect([sum(trial?.granted), sum(trial?.denied), counts.denied]).toEqual([1, 2, 2]);
});

test("the numbers of a limit are those of its last decision: a reload of policies changes them", () => {
  const now = () => START;
  const rulesOf = (capacity: number) => ({
    rules: [
      { name: "api", limit_keys: [], algorithm: "token_bucket", algorithm_config: { rate: 1, period: "1m", capacity } },
    ],
  });
  const policies = definePolicies(rulesOf(2), { now });
  const counts = new Counts(keysOfPolicies(policies), now);
  const limiter = observe(policies.limiter, counts.add);
  const take = () => limiter.limitAll(policies.select({}, {}, () => "user") as readonly LimitRequest<string>[]);
  take();
  policies.reload(rulesOf(9));
  take();
  expect(counts.figures(0).limits[0]?.policy).toBe("token bucket: 1 per 1 min, capacity 9");
});

test("the numbers of a limit stay while its store fails: a local limit in its place has a fraction of them", async () => {
  const whole = memory();
  let fails = true;
  const decide: AsyncStore["decide"] = async (call, now) =>
    fails ? Promise.reject(new Error("ECONNREFUSED")) : whole.decide(call, now);
  const store = Object.assign(Object.create(whole), { sync: false, name: "failing", decide }) as AsyncStore;
  const now = () => START;
  const plain = defineLimits({ api: API }, { store, now, onStoreError: { local: 0.5 }, log: false });
  const counts = new Counts(ownKeys(plain as never), now);
  const limits = observe(plain, counts.add);
  const policyAfter = async () => {
    await limits.limit("api", { key: "ann" });
    return counts.figures(0).limits[0]?.policy;
  };
  expect(await policyAfter()).toBe("token bucket: 0.5 per 1 min, capacity 1");
  fails = false;
  expect(await policyAfter()).toBe("token bucket: 1 per 1 min, capacity 2");
  fails = true;
  expect(await policyAfter()).toBe("token bucket: 1 per 1 min, capacity 2");
});

test("calls that take nothing are not counted, and a joint denial is that of the limits that deny", () => {
  const { counts, limits } = counted({ api: API, wide: { kind: "fixed window", rate: 10, period: "1h" } });
  limits.check("api", { key: "ann", count: 9 });
  limits.give("api", { key: "ann" });
  limits.charge("api", { key: "ann", count: 0 });
  limits.limitMany("wide", ["a", "b"], { count: 6 });
  limits.limitAll([
    { name: "api", key: "ann", count: 3 },
    { name: "wide", key: "ann" },
  ]);
  const [api, wide] = counts.figures(0).limits;
  expect([sum(api?.granted), sum(api?.denied)]).toEqual([0, 1]);
  expect([sum(wide?.granted), sum(wide?.denied)]).toEqual([2, 0]);
});

test("the keys that are denied most come first, with the limit; a shared limit has none", () => {
  const { clock, counts, limits } = counted({ api: API, shared: { kind: "fixed window", rate: 1, period: "1h" } });
  for (let i = 0; i < 2; i++) limits.limit("shared");
  for (let i = 0; i < 5; i++) limits.limit("api", { key: "0:ann" });
  clock.now += MINUTE;
  for (let i = 0; i < 5; i++) limits.limit("api", { key: "0:ann" });
  expect(counts.figures(0).top).toEqual([
    { name: "api", key: "0:ann", atLeast: 7, atMost: 7 },
    { name: "shared", key: null, atLeast: 1, atMost: 1 },
  ]);
});

test("the log has the newest denials, and how many are left out", () => {
  const { counts, limits } = counted({ api: API });
  for (let i = 0; i < 62; i++) limits.limit("api", { key: "ann" });
  const { denials, skipped } = counts.denials(0);
  expect([denials.length, skipped, denials.at(-1)?.id, counts.denied]).toEqual([50, 10, 60, 60]);
  expect(denials[0]).toEqual({
    id: 11,
    at: START,
    name: "api",
    key: "ann",
    count: 1,
    retryAfter: MINUTE,
    degraded: false,
  });
  expect(counts.denials(58).denials.map(({ id }) => id)).toEqual([59, 60]);
  expect(counts.denials(60)).toEqual({ denials: [], skipped: 0 });
  limits.limit("api", { count: 3 });
  expect(counts.denials(60).denials[0]).toMatchObject({ key: null, count: 3, retryAfter: null });
});

test("a decision without the store is counted as such, for ten minutes whatever seconds are read", () => {
  const { clock, counts, limits } = counted({ api: API });
  const decision = { ok: true, degraded: true, policy: { name: "api", kind: "fixed window", rate: 1, period: 1 } };
  counts.add({ operation: "limit", name: "api", key: "a", count: 1, decision: decision as never });
  expect(counts.figures(0).limits[0]).toMatchObject({ degraded: 1 });
  clock.now += SECOND;
  expect(counts.figures(START / 1000 + 1).limits[0]).toMatchObject({ degraded: 1 });
  clock.now = START + SPAN * SECOND;
  expect(counts.figures(0).limits[0]).toMatchObject({ degraded: 0 });
  // The same place in the ring.
  limits.limit("api", { key: "b" });
  expect(counts.figures(0).limits[0]).toMatchObject({ degraded: 0, granted: expect.arrayContaining([1]) });
});

test("names beyond the first hundred that are not defined are counted together", () => {
  const { counts, limits } = counted({ api: API });
  for (let i = 0; i < 150; i++) limits.limit(`n${i}`, { key: "ann", config: API });
  const figures = counts.figures(0).limits;
  expect(figures).toHaveLength(102);
  expect(figures.at(-1)).toMatchObject({ name: null, policy: undefined });
  expect(sum(figures.at(-1)?.granted)).toBe(50);
});

test("a million different keys take no more memory than a few thousand", () => {
  const { counts, limits } = counted({ api: API });
  const deny = (from: number, to: number): void => {
    // More than the capacity, so that the store has no state either.
    for (let i = from; i < to; i++) limits.limit("api", { key: `${i}-${"x".repeat(100)}`, count: 3 });
  };
  deny(0, 5000);
  const before = heap();
  deny(5000, 1_000_000);
  expect(heap() - before).toBeLessThan(1_000_000);
  expect(sum(counts.figures(0).limits[0]?.denied)).toBe(1_000_000);
  expect(counts.figures(0).top.every(({ atMost }) => atMost <= 1_000_000 / 256 + 1)).toBe(true);
});

test.each([
  [{ kind: "token bucket", rate: 10, period: 1000, capacity: 10 }, "token bucket: 10 per 1 s"],
  [{ kind: "token bucket", rate: 1, period: 1500, capacity: 4 }, "token bucket: 1 per 1500 ms, capacity 4"],
  [{ kind: "token bucket", rate: 9, period: 1000, capacity: 4 }, "token bucket: 9 per 1 s, capacity 4"],
  [{ kind: "fixed window", rate: 100, period: 86_400_000 }, "fixed window: 100 per 1 d"],
] as const)("%j is shown as %s", (config, text) => expect(policyText(config)).toBe(text));
