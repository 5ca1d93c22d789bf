import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { createFetch, type FetchOptions, readRateLimit } from "../../src/client/index.ts";
import { defineLimits, HOUR, SECOND } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";

const START = 1_772_366_400_000;
const URL_ = "https://api.example.com/things";
afterEach(() => void vi.unstubAllGlobals());

/** A server whose first response has these fields, and whose later ones have none. */
function serving(status: number, fields: Record<string, string>, options: FetchOptions = {}) {
  const clock = fakeClock(START);
  const times: number[] = [];
  const fetch = createFetch({
    clock,
    jitter: 0,
    fetch: async () => {
      times.push(clock.now() - START);
      return times.length === 1 ? new Response("", { status, headers: fields }) : new Response("");
    },
    ...options,
  });
  return { clock, fetch, times };
}

test.each<Record<string, string>>([
  { RateLimit: '"a";r=100000000000000;t=10', "RateLimit-Policy": '"a";q=900000000000000' },
  { RateLimit: '"a";r=5;t=999999999999999', "RateLimit-Policy": '"a";q=900' },
  { "X-RateLimit-Limit": "1000", "X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "9999-12-31T23:59:59Z" },
])(
  "little is left of a limit beyond our own bounds: the next requests are sent or wait, and none fails (%o)",
  async (fields) => {
    const limit = { kind: "token bucket", rate: 1, period: SECOND, capacity: 1 } as const;
    const { clock, fetch, times } = serving(200, fields, { limit });
    const statuses = Promise.all([1, 2, 3].map(() => fetch(URL_).then(({ status }) => status)));
    // What is left until the year 9999 is spaced by years.
    for (let year = 0; year < 20; year++) await clock.pass(365 * 24 * 3600 * SECOND);
    expect([await statuses, times.length]).toEqual([[200, 200, 200], 3]);
  },
);

test.each([
  '"a";r=0;t=7, "a";r=900;t=60',
  '"a";r=900;t=60, "a";r=0;t=7',
  '"a";r=0;t=7, "a";r=0;t=3',
  '"a";r=0;t=3, "a";r=0;t=7',
])("of several limits of one name the tightest counts: %s", async (RateLimit) => {
  const { clock, fetch, times } = serving(200, { RateLimit });
  await fetch(URL_);
  const later = fetch(URL_);
  await clock.pass(60 * SECOND);
  await later;
  expect(times).toEqual([0, 7000]);
});

test("a number of more than 15 digits, as nanoseconds since 1970, is malformed and ignored", () => {
  for (const digits of ["1772366400000000000", "9".repeat(400)]) {
    for (const field of ["Retry-After", "Retry-After-Ms"]) {
      expect(readRateLimit(new Headers({ [field]: digits }), START)).toEqual({ limits: [], retryAfter: undefined });
    }
    const reset = new Headers({ "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": digits });
    expect(readRateLimit(reset, START).limits[0]?.resetAfter).toBeUndefined();
    const duration = new Headers({ "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": `${digits}h` });
    expect(readRateLimit(duration, START).limits[0]?.resetAfter).toBeUndefined();
  }
});

test("whatever a server sends, a request gets a response or is late", async () => {
  const number = fc.oneof(
    fc.nat(100).map(String),
    fc.stringMatching(/^\d{1,20}(\.\d{1,3})?$/),
    fc.constantFrom("0", "-1", "1e9", "NaN", "", "9".repeat(400), "soon", "6m0s", `${"9".repeat(14)}d`),
    fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  );
  const fields = fc
    .record(
      {
        "Retry-After": number,
        "Retry-After-Ms": number,
        "X-RateLimit-Limit": number,
        "X-RateLimit-Remaining": number,
        "X-RateLimit-Reset": number,
        RateLimit: fc.tuple(number, number).map(([r, t]) => `"a";r=${r};t=${t}`),
        "RateLimit-Policy": number.map((q) => `"a";q=${q}`),
        Date: number,
        Age: fc.constantFrom("0", "5"),
      },
      { requiredKeys: [] },
    )
    .map((found) => found as Record<string, string>);
  const property = fc.asyncProperty(fc.constantFrom(200, 403, 429, 503), fields, async (status, fields) => {
    const { clock, fetch } = serving(status, fields, { deadline: 100 * SECOND, jitter: 0.5 });
    const answers = [1, 2, 3].map(() => fetch(URL_).then(String, (error: { reason: unknown }) => error.reason));
    await clock.pass(100 * SECOND);
    for (const answer of await Promise.all(answers)) expect(answer).toBeOneOf(["[object Response]", "late"]);
  });
  await fc.assert(property, { numRuns: 500 });
});

test("a denial with more limits than a call takes arguments is one with a wait", async () => {
  const { clock, fetch } = serving(429, { RateLimit: `${"a;r=0;t=1,".repeat(130_000)}a;r=0;t=2` }, { retries: 0 });
  expect((await fetch(URL_)).status).toBe(429);
  const late = fetch(URL_, {}).then(String);
  await clock.pass(1999);
  expect(fetch.queued).toBe(1);
  await clock.pass(1);
  expect(await late).toBe("[object Response]");
});

test("a wait of exactly `maxWait` is waited, whatever the jitter: it is spread over what `maxWait` leaves", async () => {
  const waits = new Set<number>();
  for (const [seconds, latest] of [
    [60, 60_000],
    [50, 60_000],
  ] as const) {
    for (let i = 0; i < 20; i++) {
      const { clock, fetch, times } = serving(429, { "Retry-After": String(seconds) }, { jitter: 0.5 });
      const answered = fetch(URL_);
      await clock.pass(100 * SECOND);
      expect((await answered).status).toBe(200);
      expect(times[1]).toBeGreaterThanOrEqual(seconds * SECOND);
      expect(times[1]).toBeLessThanOrEqual(latest);
      waits.add(times[1] as number);
    }
  }
  expect(waits.size).toBeGreaterThan(10);
});

test("a wait that ends at the deadline is waited, whatever the jitter", async () => {
  const { clock, fetch, times } = serving(429, { "Retry-After": "10" }, { jitter: 1, deadline: 10 * SECOND });
  const answered = fetch(URL_);
  await clock.pass(100 * SECOND);
  expect([(await answered).status, times]).toEqual([200, [0, 10_000]]);
});

test("`idempotent` returns true or false: a promise, which is neither, rejects", async () => {
  const { fetch } = serving(429, {}, { idempotent: (async () => false) as never });
  await expect(fetch(URL_, { method: "POST" })).rejects.toThrow("`idempotent` must be true or false");
});

test("an error about the client's own limit names the option `limit`", () => {
  expect(() => createFetch({ limit: 5 as never })).toThrow("`limit` must be a config with kind, rate and period");
});

describe("a mistake", () => {
  test.each([undefined, null, "text", {}, { headers: null }])(
    "a `fetch` that returns no Response: %j",
    async (returned) => {
      const fetch = createFetch({ fetch: (async () => returned) as never });
      await expect(fetch(URL_)).rejects.toThrow("`fetch` must be a function that returns a Response; got ");
    },
  );

  test("a request without a URL is refused as the host's fetch refuses it", async () => {
    await expect(createFetch()(null as never)).rejects.toThrow("Invalid URL");
  });

  const half = { aborted: false, addEventListener: () => {} };
  test.each([new AbortController(), half, 5, "aborted"])(
    "an invalid signal is refused, and the requests behind it are sent: %j",
    async (signal) => {
      const limit = { kind: "token bucket", rate: 1, period: SECOND, capacity: 1 } as const;
      const { clock, fetch, times } = serving(200, {}, { limit });
      const first = fetch(URL_);
      await expect(fetch(URL_, { signal: signal as never })).rejects.toThrow("`signal` must be an AbortSignal; got ");
      const second = fetch(URL_);
      await clock.pass(SECOND);
      expect([(await first).status, (await second).status, times]).toEqual([200, 200, [0, 1000]]);
    },
  );
});

test("where the host has no fetch, as in Jest's jsdom, an error names the option, and no token is taken", async () => {
  vi.stubGlobal("fetch", undefined);
  const fetch = createFetch({ limit: { kind: "token bucket", rate: 1, period: SECOND }, clock: fakeClock(START) });
  await expect(fetch(URL_)).rejects.toThrow("`fetch` must be given if the host has none but this one; got undefined");
  vi.stubGlobal("fetch", async () => new Response("ok"));
  expect((await fetch(URL_)).status).toBe(200);
});

test("if it replaces the host's fetch, it sends with the one that it is given; without one it rejects, and does not wait for itself", async () => {
  const given = createFetch({ fetch: async () => new Response("ok") });
  vi.stubGlobal("fetch", given);
  expect((await given(URL_)).status).toBe(200);
  const alone = createFetch();
  vi.stubGlobal("fetch", alone);
  await expect(alone(URL_)).rejects.toThrow("`fetch` must be given if the host has none but this one; got undefined");
});

test.each([
  ["the origin, by default", {}, {}, ["https://a.example", "https://b.example"]],
  ["what `key` returns", { key: ({ pathname }: URL) => pathname }, {}, ["/1", "/2"]],
  ["the key of `{ limiter, name, key }`, for all origins", {}, { key: "vendor" }, ["vendor"]],
  ["that, whatever `key` returns", { key: ({ pathname }: URL) => pathname }, { key: "vendor" }, ["vendor"]],
])("the client's own limit has as its key %s", async (_, options, own, keys) => {
  const limiter = defineLimits({ calls: { kind: "token bucket", rate: 10, period: HOUR } }, { now: () => 0 });
  const limit = { limiter, name: "calls", ...own } as const;
  const fetch = createFetch({ ...options, limit, fetch: async () => new Response("") });
  await Promise.all([fetch("https://a.example/1"), fetch("https://b.example/2")]);
  const left = keys.map((key) => limiter.getValue("calls", { key }).value);
  expect(left).toEqual(keys.length === 1 ? [8] : [9, 9]);
});
