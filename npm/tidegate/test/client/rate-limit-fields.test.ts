import { AxiosHeaders, type AxiosResponse } from "axios";
import fc from "fast-check";
import { DisplayString, parseDictionary, parseList, Token } from "structured-headers";
import { afterEach, describe, expect, test } from "vitest";
import { readRateLimit } from "../../src/client/index.ts";
import { dictionary, type Item, list } from "../../src/client/structured-fields.ts";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { type HeaderFamily, rateLimitHeaders } from "../../src/http/index.ts";
import { DIALECTS, NOW } from "./dialects.ts";

describe("the documented fields of real APIs", () => {
  test.each(DIALECTS)("$api", ({ fields, reported }) =>
    expect(readRateLimit(new Headers(fields), NOW)).toEqual(reported),
  );
});

describe("our own fields", () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 30, period: MINUTE } }, { now: () => NOW });
  const granted = limits.limit("api", { count: 10 });
  const denied = limits.limit("api", { count: 25 });
  test.each<HeaderFamily>(["draft-11", "draft-7", "draft-6", "x-ratelimit"])("%s", (family) => {
    const headers = new Headers(rateLimitHeaders(granted, { fields: family }));
    const [reported] = readRateLimit(headers, NOW).limits;
    expect(reported).toMatchObject({ unit: "requests", limit: 30, remaining: 20, resetAfter: 40_000 });
    const refused = readRateLimit(new Headers(rateLimitHeaders(denied, { fields: family })), NOW);
    expect(refused.retryAfter).toBe(10_000);
    expect(refused.limits).toHaveLength(1);
  });
});

test("reads the headers of Axios, once they are in a Headers; an absent field may be undefined", () => {
  const fields = { "Retry-After": "30", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60" };
  const axios: AxiosResponse["headers"] = AxiosHeaders.from(fields);
  const expected = readRateLimit(new Headers(fields), NOW);
  expect(readRateLimit(new Headers(axios as Record<string, string>), NOW)).toEqual(expected);
  expect(readRateLimit(new Map(Object.entries(fields)), NOW)).toEqual(expected);
  expect(readRateLimit(new Map())).toEqual({ limits: [], retryAfter: undefined });
});

describe("Retry-After", () => {
  test("of a list of any length the longest wait counts", () => {
    const list = (text: string) => ({ get: (name: string) => (name === "Retry-After" ? text : null) });
    expect(readRateLimit(list(`${"1,".repeat(200_000)}7`), NOW).retryAfter).toBe(7000);
    expect(readRateLimit(list("1,soon,7"), NOW).retryAfter).toBeUndefined();
  });

  const at = new Date(NOW + 30_000);
  const [day, date, month, year, time] = at.toUTCString().split(/,? /) as [string, string, string, string, string];
  test.each([
    ["as IMF-fixdate", at.toUTCString(), 30_000],
    [
      "of RFC 850",
      `${at.toLocaleDateString("en", { weekday: "long", timeZone: "UTC" })}, ${date}-${month}-${year.slice(2)} ${time} GMT`,
      30_000,
    ],
    ["of asctime", `${day} ${month} ${date.replace(/^0/, " ")} ${time} ${year}`, 30_000],
    ["of two servers, the longer one", "30, 60", 60_000],
    ["of two servers, one of which is malformed", "30, soon", undefined],
    ["of two servers, one with a date", `5, ${at.toUTCString()}`, 30_000],
    ["of two servers, each with a date", `${at.toUTCString()}, ${new Date(NOW).toUTCString()}`, 30_000],
  ])("%s: %s", (_, text, wait) => {
    // Not a `Headers`, which would join two blanks.
    const fields = { get: (name: string) => (name === "Retry-After" ? text : null) };
    expect(readRateLimit(fields, NOW).retryAfter).toBe(wait);
  });
});

describe("dates, whatever the host's time zone is", () => {
  const zone = process.env["TZ"];
  afterEach(() => {
    if (zone === undefined) delete process.env["TZ"];
    else process.env["TZ"] = zone;
  });
  test.each(["UTC", "Asia/Tokyo", "America/St_Johns"])("%s", (name) => {
    process.env["TZ"] = name;
    expect(new Date(NOW).getTimezoneOffset()).toBe({ UTC: 0, "Asia/Tokyo": -540 }[name] ?? 210);
    const wait = (text: string) => readRateLimit({ get: (f) => (f === "Retry-After" ? text : null) }, NOW).retryAfter;
    const reset = (text: string) => {
      const fields = { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": text };
      return readRateLimit(new Headers(fields), NOW).limits[0]?.resetAfter;
    };
    // 12:00:30 GMT, which is also meant where no zone is given.
    for (const text of [
      "Sun, 01 Mar 2026 12:00:30 GMT",
      "Sun, 01 Mar 2026 12:00:30 UTC",
      "Sun, 01 Mar 2026 12:00:30",
      "Sun, 01 Mar 2026 14:00:30 +0200",
      "Sunday, 01-Mar-26 12:00:30 GMT",
      "Sunday, 01-Mar-26 12:00:30",
      "Sun Mar  1 12:00:30 2026",
      "2026-03-01T12:00:30Z",
      "2026-03-01T12:00:30.000Z",
      "2026-03-01T12:00:30",
      "2026-03-01T14:00:30+02:00",
    ]) {
      expect([text, wait(text), reset(text)]).toEqual([text, 30_000, 30_000]);
    }
    for (const text of ["Sun, 01 Mar 2026", "Sun, 01-03-2026", "2026-03-01", "2026-03-01T", "Sun Mar  1 2026"]) {
      expect([text, wait(text), reset(text)]).toEqual([text, undefined, undefined]);
    }
  });
});

test.each([
  ["1500000ns", 2],
  ["1500us", 2],
  ["1500µs", 2],
  ["820ms", 820],
  ["1.5s", 1500],
  ["6m0s", 360_000],
  ["1h30m", 5_400_000],
  ["2d", 172_800_000],
])("a reset of %s is in %s ms", (reset, ms) => {
  const fields = { get: (name: string) => ({ "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset })[name] };
  expect(readRateLimit(fields, NOW).limits[0]?.resetAfter).toBe(ms);
});

test("where a proxy has added its own fields, the reset is of the server whose remaining is read", () => {
  const headers = (reset: string) =>
    new Headers({ "X-RateLimit-Limit": "10, 20", "X-RateLimit-Remaining": "0, 5", "X-RateLimit-Reset": reset });
  const date = new Date(NOW + 30_000).toUTCString();
  for (const reset of ["30, 60", "30s, 1m0s", `${NOW / 1000 + 30}, ${NOW / 1000 + 60}`, `${date}, 60`]) {
    const [limit] = readRateLimit(headers(reset), NOW).limits;
    expect([reset, limit?.limit, limit?.remaining, limit?.resetAfter]).toEqual([reset, 10, 0, 30_000]);
  }
});

test("a RateLimit item is read without its own policy, with a token as name and without a reset, but not with a number as name", () => {
  const read = (RateLimit: string, policy = "") =>
    readRateLimit(new Headers({ RateLimit, "RateLimit-Policy": policy }), NOW).limits;
  const reported = { name: "a", unit: "requests", limit: undefined, remaining: 1, resetAfter: 2000 };
  expect(read('"a";r=1;t=2')).toEqual([reported]);
  expect(read('"a";r=1;t=2', '"b";q=5;w=1, "c";q=7;w=1')).toEqual([reported]);
  expect(read("a;r=1")).toEqual([{ ...reported, resetAfter: undefined }]);
  expect(read('"a";r=1;t=2', "!")).toEqual([reported]);
  for (const none of ["5;r=1;t=2", '"a";r="1";t=2']) expect(read(none)).toEqual([]);
});

test.each([
  ["1500.25", 1500.25],
  ["1500 , 20", 1500],
])("Retry-After-Ms: %s is a wait of %d ms", (text, wait) =>
  expect(readRateLimit(new Headers({ "Retry-After-Ms": text }), NOW).retryAfter).toBe(wait),
);

describe("fields that are ignored", () => {
  const nothing = { limits: [], retryAfter: undefined };
  test.each([
    {},
    { RateLimit: '"a";r=1;t=2,' },
    { RateLimit: '"a";r=-1;t=2' },
    { RateLimit: '"a";t=2' },
    { RateLimit: "(1 2);r=1" },
    { "X-RateLimit-Remaining": "many" },
    { "X-RateLimit-Remaining": "-1" },
    { "X-RateLimit-Remaining": "NaN" },
    { "Retry-After": "soon" },
    { "Retry-After": "-1" },
    { "Retry-After": "1e9" },
    { "Retry-After": "0x10" },
    { "Retry-After": "" },
    { "Retry-After": "2 hours" },
    { "Retry-After": "2m0s" },
  ])("%j", (fields) => expect(readRateLimit(new Headers(fields as HeadersInit), NOW)).toEqual(nothing));

  test("a cached response reports only its Retry-After", () => {
    const headers = new Headers({ Age: "30", RateLimit: '"a";r=0;t=60', "Retry-After": "5" });
    expect(readRateLimit(headers, NOW)).toEqual({ limits: [], retryAfter: 5000 });
  });

  test("a reset in the past is no wait, and no wait is negative", () => {
    const at = (reset: string) =>
      readRateLimit(new Headers({ "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset }), NOW).limits[0]
        ?.resetAfter;
    expect(at(String(NOW / 1000 - 60))).toBe(0);
    expect(at(new Date(NOW - 60_000).toISOString())).toBe(0);
    expect(at(String(NOW + 60_000))).toBe(60_000);
    expect(at("yesterday")).toBeUndefined();
  });
});

describe("structured fields, compared with structured-headers", () => {
  const plain = (value: unknown): unknown => {
    if (value instanceof Token) return value.toString();
    if (value instanceof DisplayString) return value.toString();
    if (value instanceof ArrayBuffer) return Buffer.from(value).toString("latin1");
    if (value instanceof Date) return value.getTime() / 1000;
    return value;
  };
  const ours = ({ value, parameters }: Item): unknown[] => [value, [...parameters]];
  const theirs = ([value, parameters]: [unknown, Map<string, unknown>]): unknown[] => [
    plain(value),
    [...parameters].map(([key, one]) => [key, plain(one)]),
  ];
  /** Inner lists are not used by these fields; and structured-headers 2.1.0 refuses a date that has parameters. */
  const comparable = (text: string): boolean => !text.includes("(") && !text.includes("@");
  test("a date is a number of seconds", () => {
    const [date] = list('@1659578233;a="b"') ?? [];
    expect([date?.kind, date?.value, date?.parameters.get("a")]).toEqual(["date", 1_659_578_233, "b"]);
  });
  function orNothing<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch {
      return undefined;
    }
  }
  const bare = fc.oneof(
    fc.integer({ min: -999_999_999_999_999, max: 999_999_999_999_999 }).map(String),
    fc.tuple(fc.integer({ min: -99_999, max: 99_999 }), fc.integer({ min: 0, max: 999 })).map(([a, b]) => `${a}.${b}`),
    fc.stringMatching(/^[ !#-[\]-~]{0,12}$/).map((text) => `"${text}"`),
    fc.stringMatching(/^[A-Za-z*][A-Za-z0-9:/!#$%&'*+.^_`|~-]{0,10}$/),
    fc.constantFrom("?0", "?1", ":aGVsbG8=:", "::", ":cHsdsRa894==:", '"a\\"b\\\\c"', '%"f%c3%bc"', '%"%ff"'),
  );
  const key = fc.stringMatching(/^[a-z*][a-z0-9_.*-]{0,5}$/);
  const parameter = fc
    .tuple(key, fc.option(bare))
    .map(([name, value]) => (value === null ? `;${name}` : `; ${name}=${value}`));
  const item = fc.tuple(bare, fc.array(parameter, { maxLength: 3 })).map(([value, all]) => value + all.join(""));
  const separator = fc.constantFrom(",", ", ", " ,\t", " , ");
  const members = (one: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc.tuple(fc.array(one, { maxLength: 4 }), separator).map(([all, between]) => all.join(between));
  const entry = fc.tuple(key, item).map(([name, value]) => `${name}=${value}`);
  /** Adds, removes or replaces one character. */
  const broken = (text: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc
      .tuple(
        text,
        fc.nat(60),
        fc.nat(1),
        fc.constantFrom("", ",", ";", '"', "=", " ", "\t", "a", "A", "1", ".", "-", ":", "?", "é"),
      )
      .map(([before, at, cut, put]) => before.slice(0, at) + put + before.slice(at + cut));

  test("a list has the same items in both parsers, or both refuse it", () => {
    let read = 0;
    fc.assert(
      fc.property(fc.oneof(members(item), broken(members(item))), (text) => {
        fc.pre(comparable(text));
        const expected = orNothing(() => parseList(text).map((one) => theirs(one as never)));
        if (expected !== undefined) read++;
        expect(list(text)?.map(ours)).toEqual(expected);
      }),
      { numRuns: 2000 },
    );
    expect(read).toBeGreaterThan(500);
  });

  test("a dictionary has the same members in both parsers, or both refuse it", () => {
    fc.assert(
      fc.property(fc.oneof(members(entry), broken(members(entry))), (text) => {
        fc.pre(comparable(text));
        const expected = orNothing(() => [...parseDictionary(text)].map(([name, one]) => [name, theirs(one as never)]));
        const found = dictionary(text);
        expect(found === undefined ? undefined : [...found].map(([name, one]) => [name, ours(one)])).toEqual(expected);
      }),
      { numRuns: 2000 },
    );
  });
});
