import { expect, test, vi } from "vitest";
import { createFetch, throttle } from "../src/client/index.ts";
import { defineLimits } from "../src/index.ts";
import { type Duration, inMs } from "../src/limit/duration.ts";
import { jitter } from "../src/limit/jitter.ts";
import { Limit } from "../src/limit/limit.ts";
import { adaptiveRate } from "../src/limiter/adaptive.ts";
import { spend } from "../src/limiter/budget.ts";
import { rateLimit } from "../src/middleware/express.ts";
import { definePolicies } from "../src/policies/index.ts";
import { file } from "../src/stores/file.ts";
import { type AsyncStore, transactional } from "../src/stores/index.ts";
import { memcached } from "../src/stores/memcached.ts";
import { fakeClock } from "../src/testing/clock.ts";

test.each([
  ["500ms", 500],
  ["30s", 30_000],
  ["15m", 900_000],
  ["1.5h", 5_400_000],
  ["1d", 86_400_000],
  ["2w", 1_209_600_000],
  // As products of doubles these are no integers.
  ["1.005s", 1005],
  ["0.07h", 252_000],
  ["1.13h", 4_068_000],
  ["1.0005s", 1000.5],
  [250, 250],
  ["1 minute", "1 minute"],
  ["-1m", "-1m"],
  ["1M", "1M"],
  ["", ""],
])("%j is %j ms", (duration, ms) => {
  expect(inMs(duration)).toBe(ms);
});

const bucket = { kind: "token bucket", rate: 5, period: "15m" } as const;
const silent: AsyncStore = {
  ...transactional({ name: "silent", transaction: (body) => body({ get: () => null, set() {}, delete() {} }) }),
  decide: () => new Promise(() => {}),
};

test("a limit takes its period and start as texts", () => {
  const { policy } = defineLimits({ api: bucket }).limit("api");
  expect(policy.period).toBe(900_000);
  const window = { kind: "fixed window", rate: 5, period: "1d", start: "8h" } as const;
  expect(defineLimits({ api: window }).limit("api").policy).toMatchObject({ period: 86_400_000, start: 28_800_000 });
});

test("a limiter and a limit take their timeouts as texts", async () => {
  const causes = [
    await defineLimits({ api: bucket }, { store: silent, timeout: "15ms", log: false }).limit("api"),
    await defineLimits({ api: { ...bucket, timeout: "0.02s" } }, { store: silent, log: false }).limit("api"),
  ].map(({ cause }) => String(cause));
  expect(causes).toEqual([expect.stringContaining("within 15 ms"), expect.stringContaining("within 20 ms")]);
});

test("a policy document takes its period and start as texts", () => {
  const rule = { name: "api", limit_keys: [], algorithm: "fixed_window" } as const;
  const numbers = { rate: 5, period: "1.5h", start: "15m" } as const;
  const policies = definePolicies({ rules: [{ ...rule, algorithm_config: numbers }] });
  expect(policies.configOf("api")).toMatchObject({ period: 5_400_000, start: 900_000 });
});

test("jitter takes its cap as a text", () => {
  const denied = { retryAt: 1e12, retryAfter: 3_600_000 };
  expect(jitter(denied, { key: "k", most: "2s" })).toBe(jitter(denied, { key: "k", most: 2000 }));
  expect(jitter(denied, { key: "k", most: "2s" })).toBeLessThan(1e12 + 2000);
});

test("an adaptive rate takes its times as texts", () => {
  const clock = fakeClock();
  const times = { period: "1s", burst: "2s", latency: "100ms", every: "5s" } as const;
  const upstream = adaptiveRate({ floor: 1, ceiling: 100, start: 50, ...times, now: clock.now });
  expect(upstream.config()).toMatchObject({ rate: 50, period: 1000, capacity: 100 });
  const done = upstream.begin();
  clock.advance(101);
  done();
  clock.advance(4898);
  expect(upstream.rate).toBe(50);
  clock.advance(1);
  expect(upstream.rate).toBe(35);
});

test("spend takes its wait as a text", async () => {
  const limits = defineLimits({ api: { ...bucket, rate: 1, period: "1s" } }, { now: () => 1e12 });
  const waits: number[] = [];
  const options = {
    limits: ["api"],
    estimate: 1,
    wait: "1s",
    sleep: async (ms: number) => void waits.push(ms),
  } as const;
  const run = async () => (await spend(limits, options, () => "done")).ok;
  expect([await run(), await run(), await run()]).toEqual([true, true, false]);
  expect(waits).toEqual([1000]);
});

test("queued calls and a fetch take their waits as texts", async () => {
  const clock = fakeClock();
  const slow = { kind: "token bucket", rate: 1, period: "1h", capacity: 1 } as const;
  const call = throttle(() => "ran", slow, { clock, maxWait: "59m" });
  expect(await call()).toBe("ran");
  await expect(call()).rejects.toMatchObject({ reason: "late" });
  const soon = call.with({ maxWait: "1h" })();
  await clock.advance(3_600_000);
  expect(await soon).toBe("ran");
  const answer = () => new Response(null, { status: 429, headers: { "retry-after": "120" } });
  const options = { clock, jitter: 0, fetch: async () => answer() };
  expect((await createFetch({ ...options, maxWait: "1m" })("http://a/")).status).toBe(429);
  expect((await createFetch({ ...options, deadline: "1m" })("http://b/")).status).toBe(429);
});

const cache = { gets() {}, add() {}, cas() {}, del() {} };
test("the Memcached store takes its stepTimeout as a text", async () => {
  vi.useFakeTimers();
  const store = memcached(cache, { stepTimeout: "20ms" });
  const late = expect(store.getValue(new Limit("api", bucket), "k", 0)).rejects.toThrow("no answer within 20 ms");
  await vi.advanceTimersByTimeAsync(20);
  await late;
});

const text = (duration: string) => duration as Duration;

test.each<[string, () => unknown]>([
  ["period", () => defineLimits({ api: { ...bucket, period: text("1 minute") } })],
  ["period", () => defineLimits({ api: { ...bucket, period: text("-1m") } })],
  ["start", () => defineLimits({ api: { kind: "fixed window", rate: 1, period: 1, start: text("8 h") } })],
  ["timeout", () => defineLimits({ api: bucket }, { timeout: text("1sec") })],
  ["timeout", () => defineLimits({ api: { ...bucket, timeout: text("0ms") } })],
  ["most", () => rateLimit(defineLimits({ api: bucket }), { name: "api", jitter: { most: text("1") } })],
  ["latency", () => adaptiveRate({ floor: 1, ceiling: 2, period: "1s", latency: text("fast") })],
  ["maxWait", () => throttle(() => 0, bucket, { maxWait: text("1y") })],
  ["deadline", () => createFetch({ deadline: text("soon") })],
  ["sync", () => file("x", { sync: text("often") })],
  ["stepTimeout", () => memcached(cache, { stepTimeout: text("0s") })],
])("a text that is no duration is an error that names `%s` and shows one", (field, call) => {
  expect(call).toThrow(new RegExp(`^\`${field}\` must be .* of ms .*, or a string such as "\\d+m?s?"; got "`));
});

test("a fraction of a ms where an integer is needed is an error", () => {
  expect(() => defineLimits({ api: { ...bucket, period: "0.5ms" } })).toThrow(/`period` must be .*; got 0.5/);
});
