import fc from "fast-check";
import { parseList } from "structured-headers";
import { describe, expect, test } from "vitest";
import { appendRateLimitHeaders, type HeaderFamily, problem, rateLimitHeaders, statusOf } from "../src/http/index.ts";
import {
  type Config,
  defineLimits,
  type Decision,
  evaluate,
  HOUR,
  isInputError,
  MINUTE,
  SECOND,
} from "../src/index.ts";

const NOW = 1_700_000_000_000;
const bucket = (config: Partial<Config> = {}): Config =>
  ({ kind: "token bucket", rate: 10, period: MINUTE, capacity: 20, ...config }) as Config;
const fixedWindow: Config = { kind: "fixed window", rate: 100, period: HOUR, start: 0 };

/** The last of several calls at their times. */
function after(config: Config, calls: { now?: number; count?: number; reserve?: boolean }[], name = "api"): Decision {
  let now = NOW;
  const limits = defineLimits({ [name]: config }, { now: () => now });
  let last: Decision | undefined;
  for (const call of calls) {
    now = call.now ?? now;
    last = limits.limit(name, { count: call.count, reserve: call.reserve });
  }
  return last as Decision;
}
/** Each item with its parameters. Those that are numbers here are checked to be where it matters. */
// biome-ignore lint/suspicious/noExplicitAny: what came over the wire
const params = (field: string | undefined): Record<string, any>[] =>
  parseList(field ?? "").map(([name, all]) => ({ name, ...Object.fromEntries(all as Map<string, unknown>) }));

describe("rateLimitHeaders", () => {
  test("a grant has what is left and the policy, and no Retry-After", () => {
    expect(rateLimitHeaders(after(bucket(), [{}]))).toEqual({
      "RateLimit-Policy": '"api";q=20;w=120',
      RateLimit: '"api";r=19;t=114',
    });
  });

  test("on a denial Retry-After is whole seconds, rounded up from retryAt", () => {
    const denied = after(bucket(), [{ count: 20 }, { now: NOW + 1 }]);
    expect(denied.retryAfter).toBe(5999);
    expect(rateLimitHeaders(denied)).toEqual({
      "RateLimit-Policy": '"api";q=20;w=120',
      RateLimit: '"api";r=0;t=6',
      "Retry-After": "6",
    });
  });

  test("Retry-After is at least 1, which some clients need", () => {
    const denied = after(bucket({ rate: 1000, period: SECOND, capacity: 1 }), [{}, {}]);
    expect(denied.retryAfter).toBe(1);
    expect(rateLimitHeaders(denied)["Retry-After"]).toBe("1");
  });

  test("a fixed window's t is the rest of the window, rounded up", () => {
    const d = after(fixedWindow, [{ now: 10 * HOUR + 1 }]);
    expect(rateLimitHeaders(d)).toEqual({ "RateLimit-Policy": '"api";q=100;w=3600', RateLimit: '"api";r=99;t=3600' });
    expect(rateLimitHeaders(after(fixedWindow, [{ now: 11 * HOUR - 1 }]))["RateLimit"]).toBe('"api";r=99;t=1');
  });

  test("r is rounded down and never negative, with tokens owed too", () => {
    expect(params(rateLimitHeaders(after(bucket(), [{ count: 0.001 }]))["RateLimit"])[0]).toMatchObject({ r: 19 });
    const owed = after(bucket(), [{ count: 50, reserve: true }]);
    expect(owed.reserved).toBe(true);
    const fields = rateLimitHeaders(owed);
    expect(params(fields["RateLimit"])[0]).toMatchObject({ r: 0, t: 31 * 6 });
    expect(fields).not.toHaveProperty("Retry-After");
  });

  test("a clock that is behind the state waits for it first", () => {
    const state = { value: 0.5, ts: NOW + 10_000 };
    const { decision } = evaluate(state, bucket(), { now: NOW });
    expect(decision).toMatchObject({ ok: false, ts: NOW + 10_000, retryAfter: 13_000 });
    expect(rateLimitHeaders(decision)["RateLimit"]).toBe('"evaluate";r=0;t=13');
  });

  test("a request that is never granted has the policy, no Retry-After, and another status than 429", () => {
    const never = after(bucket(), [{ count: 21 }]);
    expect(never.reason).toBe("exceeds capacity");
    expect(rateLimitHeaders(never, { fields: ["draft-11", "draft-6", "x-ratelimit"] })).toEqual({
      "RateLimit-Policy": '"api";q=20;w=120',
      "RateLimit-Limit": "20",
      "X-RateLimit-Limit": "20",
    });
    expect([statusOf(never), statusOf(never, { never: 413 })]).toEqual([400, 413]);
    for (const write of [statusOf, problem]) {
      expect(() => write(never, { nevr: 413 } as object)).toThrow("`nevr` must be absent: a problem has never, ");
    }
    expect(problem(never)).toMatchObject({ type: "about:blank", status: 400, "violated-policies": ["api"] });
    expect(problem(never)).not.toHaveProperty("retryAt");
  });

  test("a capacity of 0, which only grants reservations, has fields that parse", () => {
    const d = after(bucket({ capacity: 0 }), [{ reserve: true }]);
    expect(params(rateLimitHeaders(d)["RateLimit"])[0]).toEqual({ name: "api", r: 0, t: 6 });
    expect(params(rateLimitHeaders(d)["RateLimit-Policy"])[0]).toEqual({ name: "api", q: 0, w: 1 });
  });

  test("periods below a second and beyond 10^15 seconds stay in range", () => {
    const fast = after(bucket({ kind: "fixed window", period: 100, start: 0 } as Partial<Config>), [{}]);
    expect(params(rateLimitHeaders(fast)["RateLimit-Policy"])[0]).toMatchObject({ w: 1 });
    const slow = after(bucket({ rate: 1e-9, period: 2 ** 40, capacity: 2 ** 40 }), [{}]);
    expect(params(rateLimitHeaders(slow)["RateLimit-Policy"])[0]).toMatchObject({ w: 999_999_999_999_999 });
    expect(params(rateLimitHeaders(slow)["RateLimit"])[0]).toMatchObject({ t: 999_999_999_999_999 });
  });

  test("the older families have the same numbers", () => {
    const denied = after(bucket(), [{ count: 20 }, { now: NOW + 1 }]);
    expect(rateLimitHeaders(denied, { fields: "draft-7" })).toEqual({
      "RateLimit-Policy": "20;w=120",
      RateLimit: "limit=20, remaining=0, reset=6",
      "Retry-After": "6",
    });
    expect(rateLimitHeaders(denied, { fields: ["draft-6", "x-ratelimit"] })).toEqual({
      "RateLimit-Policy": "20;w=120",
      "RateLimit-Limit": "20",
      "RateLimit-Remaining": "0",
      "RateLimit-Reset": "6",
      "X-RateLimit-Limit": "20",
      "X-RateLimit-Remaining": "0",
      "X-RateLimit-Reset": String(NOW / 1000 + 6),
      "Retry-After": "6",
    });
  });

  test("an older client that obeys only the reset is never early, for any count", () => {
    const denied = after(bucket(), [{ count: 17 }, { count: 10 }]);
    expect(denied).toMatchObject({ remaining: 3, retryAfter: 42_000 });
    const fields = rateLimitHeaders(denied, { fields: ["draft-11", "draft-6", "x-ratelimit"] });
    expect(fields["RateLimit"]).toBe('"api";r=3;t=18');
    expect(fields["RateLimit-Reset"]).toBe("42");
    expect(fields["X-RateLimit-Reset"]).toBe(String(NOW / 1000 + 42));
  });

  test("several limits are all listed; Retry-After is the longest wait, and no t is beyond it", () => {
    const limits = defineLimits({ burst: bucket({ capacity: 1 }), day: fixedWindow }, { now: () => NOW });
    const requests = [{ name: "burst" }, { name: "day" }] as const;
    limits.limitAll(requests);
    const all = limits.limitAll(requests);
    expect(all.ok).toBe(false);
    const fields = rateLimitHeaders(all);
    expect(params(fields["RateLimit"])).toEqual([
      { name: "burst", r: 0, t: 6 },
      { name: "day", r: 98, t: 6 }, // a check reports the state as if the tokens were taken
    ]);
    expect(fields["Retry-After"]).toBe("6");
    expect(rateLimitHeaders(all.decisions)).toEqual(fields);
    expect(problem(all)).toMatchObject({ status: 429, "violated-policies": ["burst"], retryAt: NOW + 6000 });
  });

  test("pk and qu parse to the partition key and unit that were set", () => {
    const partitionKey = Uint8Array.of(0, 255, 16);
    const fields = rateLimitHeaders(after(bucket(), [{}]), { partitionKey, unit: "content-bytes" });
    const [policy] = params(fields["RateLimit-Policy"]);
    expect(new Uint8Array(policy?.["pk"])).toEqual(partitionKey);
    expect(policy?.["qu"]).toBe("content-bytes");
  });

  test("jitter is never earlier, at most its fraction later, and the same on every call", () => {
    const denied = after(bucket(), [{ count: 20 }, { count: 10 }]);
    const waits = Array.from({ length: 200 }, (_, i) =>
      Number(rateLimitHeaders(denied, { jitter: { key: `client ${i}` } })["Retry-After"]),
    );
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(60);
    expect(Math.max(...waits)).toBeLessThanOrEqual(90);
    expect(new Set(waits).size).toBeGreaterThan(15);
    const options = { jitter: { key: "client 7" }, fields: ["draft-11", "x-ratelimit"] as HeaderFamily[] };
    const fields = rateLimitHeaders(denied, options);
    expect(rateLimitHeaders(denied, options)).toEqual(fields);
    expect(fields["X-RateLimit-Reset"]).toBe(String(Math.ceil((problem(denied, options)?.retryAt as number) / 1000)));
  });

  test("without the store nothing is made up: only the policy, and 503", () => {
    const denied: Decision = { ...after(bucket(), [{}]), ok: false, value: 0, degraded: true };
    expect(rateLimitHeaders(denied)).toEqual({ "RateLimit-Policy": '"api";q=20;w=120' });
    expect(statusOf(denied)).toBe(503);
    expect(problem(denied)?.type).toBe("https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
  });

  test("a wrong argument throws an InputError that names it", () => {
    const d = after(bucket(), [{}]);
    const message = (run: () => unknown): string => {
      try {
        run();
      } catch (error) {
        if (isInputError(error)) return error.message;
        throw error;
      }
      return "no error";
    };
    expect(message(() => rateLimitHeaders(d, { fields: "draft-8" as HeaderFamily }))).toBe(
      '`fields` must be draft-11, draft-7, draft-6, x-ratelimit, or an array of these; got "draft-8"; use "draft-11", which has the same fields',
    );
    expect(message(() => rateLimitHeaders(d, { fields: ["draft-11", "draft-7"] }))).toBe(
      "`fields` must be only one of draft-11 and draft-7: both write the field RateLimit; got both",
    );
    expect(message(() => rateLimitHeaders([]))).toBe("`decision` must be at least one decision; got none");
    expect(message(() => rateLimitHeaders(undefined as never))).toMatch(/^`decision` must be a decision/);
    expect(message(() => rateLimitHeaders(Promise.resolve() as never))).toMatch(/; got a promise; `await` it first$/);
    expect(message(() => rateLimitHeaders({ ...d, policy: { ...d.policy, name: "a\r\nSet-Cookie: x" } }))).toMatch(
      /^`name` must be a string of printable ASCII characters/,
    );
    expect(rateLimitHeaders({ ...d, policy: { ...d.policy, name: 'a"\\' } })["RateLimit"]).toMatch(/^"a\\"\\\\";/);
  });

  const configs = fc.record({
    kind: fc.constantFrom("token bucket" as const, "fixed window" as const),
    rate: fc.oneof(fc.double({ min: 0.01, max: 1e9, noNaN: true }), fc.integer({ min: 1, max: 1000 })),
    period: fc.oneof(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 2 ** 40 })),
    capacity: fc.oneof(fc.double({ min: 0, max: 2 ** 40, noNaN: true }), fc.integer({ min: 0, max: 100 })),
  });
  test("a decision without its numbers is a mistake, and no NaN is in a field", () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: 1000 } }, { now: () => 0 });
    const made = [limits.limit("api"), limits.limit("api")];
    for (const decision of made) {
      for (const field of decision.ok ? ["value", "ts", "now"] : ["value", "ts", "now", "retryAt"])
        for (const number of field === "retryAt" ? [Number.NaN] : [Number.NaN, undefined])
          for (const fields of ["draft-11", "draft-7", "draft-6", "x-ratelimit"] as const)
            expect(() => rateLimitHeaders({ ...decision, [field]: number }, { fields })).toThrow(
              `\`${field}\` must be a finite number`,
            );
    }
  });

  test("`never` is one of three numbers: no text, and no name that every object has", () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: 1000 } });
    const never = limits.limit("api", { count: 2 });
    for (const wrong of ["413", "toString", "__proto__"])
      expect(() => statusOf(never, { never: wrong as never })).toThrow("`never` must be 400, 413 or 422");
  });

  test("whatever the decision, fields parse, and obeying Retry-After is granted", () => {
    // Most doubles are close to zero: without the hundredths no call would be denied.
    const part = fc.oneof(
      fc.double({ min: 0, max: 1.01, noNaN: true }),
      fc.nat(101).map((hundredths) => hundredths / 100),
    );
    const counts = fc.array(fc.record({ part, step: fc.nat(5000) }), { minLength: 1, maxLength: 8 });
    let waits = 0;
    fc.assert(
      fc.property(configs, counts, fc.boolean(), (config, calls, reserve) => {
        let state = null as Parameters<typeof evaluate>[0];
        let now = NOW;
        for (const { part, step } of calls) {
          now += step;
          const count = Math.min(config.capacity * part, 2 ** 40);
          const { decision, state: next } = evaluate(state, config as Config, { now, count, reserve });
          state = next;
          const fields = rateLimitHeaders(decision);
          const wait = fields["Retry-After"];
          for (const { q, w } of params(fields["RateLimit-Policy"])) {
            expect([Number.isSafeInteger(q), Number.isSafeInteger(w), q >= 0, w > 0]).toEqual([true, true, true, true]);
          }
          for (const { r, t } of params(fields["RateLimit"])) {
            expect([Number.isSafeInteger(r), Number.isSafeInteger(t), r >= 0, t > 0]).toEqual([true, true, true, true]);
            expect(r).toBeLessThanOrEqual(Math.floor(config.capacity));
            if (wait !== undefined) expect(t).toBeLessThanOrEqual(Number(wait));
          }
          if (decision.ok || decision.retryAt === undefined) expect(wait).toBeUndefined();
          else {
            waits++;
            expect(wait).toMatch(/^[1-9]\d*$/);
            const later = now + Number(wait) * 1000;
            expect(later).toBeGreaterThanOrEqual(decision.retryAt);
            expect(later).toBeLessThan(decision.retryAt + 1000);
            if (later <= 2 ** 52) {
              expect(evaluate(state, config as Config, { now: later, count, reserve }).decision.ok).toBe(true);
            }
          }
        }
      }),
      { numRuns: 500 },
    );
    expect(waits).toBeGreaterThan(20);
  });

  test("r in t is never more than the policy's rate allows", () => {
    fc.assert(
      fc.property(configs, fc.double({ min: 0, max: 1, noNaN: true }), (config, part) => {
        fc.pre(config.kind === "token bucket");
        const { decision } = evaluate(null, config as Config, { now: NOW, count: config.capacity * part });
        const [{ r, t } = {}] = params(rateLimitHeaders(decision)["RateLimit"]);
        const perSecond = (config.rate / config.period) * 1000;
        expect(r).toBeTypeOf("number");
        if (t < 999_999_999_999_999) expect(r).toBeLessThanOrEqual(t * perSecond * (1 + 1e-9));
      }),
    );
  });
});

test("a policy by hand without its numbers is an error that lists them, granted or denied", () => {
  const granted = after(bucket({ capacity: 1 }), [{}], "api");
  const denied = after(bucket({ capacity: 1 }), [{}, {}], "api");
  const window = after(fixedWindow, [{}], "api");
  for (const decision of [granted, denied, window]) {
    for (const field of ["rate", "period", "capacity"]) {
      for (const value of [undefined, Number.NaN, "many", {}]) {
        const policy = { ...decision.policy, [field]: value };
        for (const fields of ["draft-11", "draft-7", "draft-6"] as const) {
          const write = () => rateLimitHeaders({ ...decision, policy } as Decision, { fields });
          expect(write, `${field}: ${String(value)}`).toThrow(
            "`policy` must be an object with rate, period and capacity; got an",
          );
        }
      }
    }
  }
  const policy = { name: "api" } as Decision["policy"];
  const sentence = "`policy` must be an object with rate, period and capacity; got an object";
  expect(() => rateLimitHeaders({ ...granted, policy })).toThrow(sentence);
});

describe("appendRateLimitHeaders", () => {
  const burst = after(bucket({ capacity: 1 }), [{}, {}], "burst");
  const day = after(fixedWindow, [{}], "day");

  test("lists grow and Retry-After keeps the longer wait, in either order", () => {
    for (const [first, second] of [
      [burst, day],
      [day, burst],
    ] as const) {
      const headers = new Headers();
      appendRateLimitHeaders(headers, first);
      appendRateLimitHeaders(headers, second);
      expect(params(headers.get("RateLimit") ?? "")).toMatchObject([
        { name: first.policy.name },
        { name: second.policy.name },
      ]);
      expect(params(headers.get("RateLimit-Policy") ?? "")).toHaveLength(2);
      expect(headers.get("Retry-After")).toBe("6");
    }
  });

  test("of a Retry-After that is a date the later time stays; one that is neither is replaced", () => {
    const at = (seconds: number) => new Date(NOW + seconds * 1000).toUTCString();
    const found = [at(3600), at(3), at(-60), "7", "soon", ""].map((earlier) => {
      const headers = new Headers({ "Retry-After": earlier, "RateLimit-Remaining": "0", "RateLimit-Reset": "1" });
      appendRateLimitHeaders(headers, burst, { fields: "draft-6" });
      return [headers.get("Retry-After"), headers.get("RateLimit-Reset")];
    });
    expect(found).toEqual([
      [at(3600), "1"],
      ["6", "6"],
      ["6", "6"],
      ["7", "1"],
      ["6", "6"],
      ["6", "6"],
    ]);
    const headers = new Headers({ "Retry-After": at(3) });
    appendRateLimitHeaders(headers, day);
    expect(headers.get("Retry-After")).toBe(at(3));
  });

  test("draft-7's single value, of another limiter, is replaced: no client could read a list with it", () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: 1000 } }, { now: () => 0 });
    for (const decision of [limits.limit("api"), limits.limit("api")]) {
      const headers = new Headers({ RateLimit: "limit=5, remaining=3, reset=9", "RateLimit-Policy": "5;w=60" });
      appendRateLimitHeaders(headers, decision);
      expect(headers.get("RateLimit")).toBe('"api";r=0;t=1');
      expect(headers.get("RateLimit-Policy")).toBe('5;w=60, "api";q=1;w=1');
    }
  });

  test("of single-valued fields the tighter limit's stay, in either order, on a response of node:http too", () => {
    const looser = after(bucket({ capacity: 500 }), [{}], "looser");
    for (const fields of ["draft-7", "draft-6", "x-ratelimit"] as const) {
      for (const pair of [
        [burst, day],
        [day, burst],
        [looser, day],
        [day, looser],
      ] as const) {
        const written = new Map<string, string>();
        const response = {
          getHeader: (name: string) => written.get(name),
          setHeader: (name: string, value: string) => written.set(name, value),
        };
        for (const decision of pair) appendRateLimitHeaders(response, decision, { fields });
        const tight = pair.includes(burst as never) ? burst : day;
        const { "RateLimit-Policy": policy, ...single } = rateLimitHeaders(tight, { fields });
        expect(Object.fromEntries(written)).toMatchObject(single);
        if (policy !== undefined) expect(written.get("RateLimit-Policy")).toContain(policy);
      }
    }
  });
});
