import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Config, memory, SECOND } from "../../src/index.ts";
import { definePolicies, type PolicyDocument, type PolicyRequest, type PolicyRule } from "../../src/policies/index.ts";
import { policyKey } from "../../src/policies/key.ts";
import { fakeClock } from "../../src/testing/clock.ts";
import { behind } from "../behind.ts";
import { PLANS } from "./documents.ts";

const rule = (fields: Partial<PolicyRule> = {}): PolicyRule => ({
  name: "api",
  limit_keys: ["header:x-api-key"],
  algorithm: "token_bucket",
  algorithm_config: { rps: 1, burst: 10 },
  ...fields,
});

function start(document: PolicyDocument) {
  const clock = fakeClock();
  const store = memory();
  const policies = definePolicies(document, { store, now: clock.now, claims: () => undefined });
  const took = (request: PolicyRequest) =>
    policies.limit(request)?.decisions.map(({ policy, value, ok }) => `${policy.name} ${ok ? value : "denied"}`);
  return { clock, policies, took };
}

describe("the rules that apply", () => {
  test("a verified claim selects the plan, and each API key has its own bucket", () => {
    const { took } = start(PLANS);
    const take = (plan: string, key: string) => took({ headers: { "x-api-key": key }, claims: { plan } });
    expect([take("enterprise", "a"), take("enterprise", "b"), take("pro", "a"), take("free", "a")]).toEqual([
      ["enterprise 1999"],
      ["enterprise 1999"],
      ["pro 199"],
      ["free 19"],
    ]);
    expect([take("none", "a"), took({ headers: { "x-api-key": "a" } })]).toEqual([undefined, undefined]);
  });

  test("all matching rules are one decision: if one denies, none takes tokens", () => {
    const total = rule({ name: "total", limit_keys: [], algorithm_config: { rps: 1, burst: 15 }, cost: 5 });
    const { policies, took } = start({ rules: [rule(), total] });
    const request = { headers: { "x-api-key": "a" } };
    for (const left of [10, 5, 0]) expect(took(request)).toEqual([`api ${7 + left / 5}`, `total ${left}`]);
    expect(policies.limit(request)).toMatchObject({ ok: false, retryAfter: 5000 });
    const { value } = policies.limiter.getValue("api", {
      key: policyKey("a") as string,
      config: policies.configOf("api"),
    });
    expect(value).toBe(7);
  });

  test("a claim that is no finite number is absent", () => {
    const { took } = start({ rules: [rule({ match: { "jwt:level": "NaN" }, limit_keys: ["ip:address"] })] });
    const take = (level: unknown) => took({ address: "192.0.2.1", claims: { level } });
    expect([take("NaN"), take(Number.NaN)]).toEqual([["api 9"], undefined]);
  });

  test("all conditions of a match must be equal, as text, and only own claims are read", () => {
    const match = { "jwt:level": 3, "jwt:beta": true, "header:x-a": "", "query:v": "1", "ip:address": "192.0.2.1" };
    const { took } = start({ rules: [rule({ match })] });
    const right = { headers: { "x-a": "" }, url: "/?v=1", address: "192.0.2.1", claims: { level: 3, beta: true } };
    expect(took(right)).toEqual(["api 9"]);
    expect(took({ ...right, claims: { level: "3", beta: "true" } })).toEqual(["api 8"]);
    for (const other of [
      { claims: { level: 4, beta: true } },
      { claims: { level: [3], beta: true } },
      { claims: Object.create({ level: 3, beta: true }) as object },
      { claims: undefined },
      { headers: {} },
      { headers: { "x-a": ["b", "c"] } },
      { url: "/?v=2&v=3" },
      { url: undefined },
      { address: "192.0.2.2" },
    ]) {
      expect(took({ ...right, ...other }), JSON.stringify(other)).toBeUndefined();
    }
  });

  test("a repeated parameter avoids no rule: one of its values is enough, since handlers read the first or the last", () => {
    const { took } = start({ rules: [rule({ match: { "query:v": "1" } })] });
    const urls = ["/?v=1", "/?v=1&v=1", "/?v=1&v=2", "/?v=2&v=1#?v=2", "/?%76=%31&v="];
    expect(urls.map((url) => took({ url }))).toEqual([9, 8, 7, 6, 5].map((left) => [`api ${left}`]));
  });

  test("a repeated header is one as a parameter is, where the host lists its texts", () => {
    const cost = { source: "header:x-cost", default: 1, max: 5 } as const;
    const { took } = start({ rules: [rule({ match: { "header:x-a": "1" }, limit_keys: ["header:x-key"], cost })] });
    const request = (key: string[], cost: string[] = []) => ({
      headers: { "x-a": ["2", "1"], "x-key": key, "x-cost": cost },
    });
    expect(took(request(["a"], ["3"]))).toEqual(["api 7"]);
    expect(took(request(["a", "b"], ["1", "4", "x"]))).toEqual(["api 6"]);
    expect(took(request(["a", "c"]))).toEqual(["api 5"]);
    expect(took(request([]))).toEqual(["api 4"]);
  });

  test("names of headers are read in any case, as in an event of API Gateway v1: writing one differently avoids no rule", () => {
    const cost = { source: "header:x-cost", default: 1, max: 5 } as const;
    const { took } = start({ rules: [rule({ match: { "header:x-a": "1" }, limit_keys: ["header:X-Key"], cost })] });
    const key = { "x-a": "1", "x-key": "a" };
    expect(took({ headers: { "X-A": "1", "X-KEY": "a", "X-Cost": "3" } })).toEqual(["api 7"]);
    expect(took({ headers: { "X-A": "2", "X-Cost": "x", ...key } })).toEqual(["api 6"]);
    expect(took({ headers: { "X-Key": "b", ...key } })).toEqual(["api 9"]);
    const ponyfill = { ownKeys: ["X-A"], get: (name: string) => new Headers(key).get(name) };
    expect(took({ headers: ponyfill })).toEqual(["api 5"]);
    // What is no text is absent in any case.
    const numbers = { "x-a": "1", "x-key": 7, "x-cost": 3 };
    expect(took({ headers: numbers })).toEqual(["api 8"]);
    expect(took({ headers: { ...numbers, "X-A": undefined } })).toEqual(["api 7"]);
  });

  test("a repeated parameter is an absent part of a key: repeating another's value takes none of its tokens", () => {
    const { took } = start({ rules: [rule({ limit_keys: ["query:user"] })] });
    const urls = ["/?user=a", "/?user=a&user=a", "/?user=b&user=a", "/"];
    expect(urls.map((url) => took({ url }))).toEqual([["api 9"], ["api 9"], ["api 8"], ["api 7"]]);
  });

  test("a parameter behind a #, or in brackets, avoids no rule, since some handlers read it, and is an absent part of a key, since others do not", () => {
    const { took } = start({
      rules: [rule({ match: { "query:v": "1" }, limit_keys: ["query:user"], cost: { source: "query:n" } })],
    });
    // Fastify and Polka read behind a #, Koa behind a second ?; qs, as in Express 4, reads brackets.
    const targets = [
      "/?a#&v=1",
      "/#v=1",
      "/#?v=1",
      "/#a?v=1",
      "/#a?b&v=1",
      "/??v=1",
      "/?[v]=1",
      "/?v[]=1",
      "/?v[0]=1",
      "/?%5Bv%5D=1",
    ];
    expect(targets.map((url) => took({ url }))).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0].map((left) => [`api ${left}`]));
    for (const url of ["/?a[v]=1", "/?vv=1", "/?v.a=1", "/?a=/?v=1", "/?av=1#va=1"])
      expect(took({ url })).toBeUndefined();
    expect(took({ url: "/?v=1&user=a&[n]=4" })).toEqual(["api 6"]);
    // No token of an absent user is left.
    for (const url of ["/?v=1&user[]=c", "/??user=d&v=1", "/?v=1&[user]=d", "/?v=1#&user=e", "/?v=1&user=a#"])
      expect(took({ url })).toEqual(["api denied"]);
  });

  test("a parameter that is repeated very often costs the largest of its values", () => {
    const { took } = start({ rules: [rule({ limit_keys: [], cost: { source: "query:n" } })] });
    expect(took({ url: `/?${"n=1&".repeat(200_000)}n=4` })).toEqual(["api 6"]);
  });

  test("the fallback applies only if no rule matches", () => {
    const { name: _, ...shared } = rule({ limit_keys: ["ip:address"], algorithm_config: { rps: 1, burst: 3 } });
    const { took, policies } = start({ ...PLANS, fallback_limit: shared });
    expect(took({ address: "192.0.2.1" })).toEqual(["fallback_limit 2"]);
    expect(took({ address: "192.0.2.1", claims: { plan: "free" } })).toEqual(["free 19"]);
    expect(policies.names).toEqual(["enterprise", "pro", "free", "fallback_limit"]);
    expect(() => policies.limit({})).toThrow(/^`address` must be given if the document reads ip:address/);
  });
});

describe("a rule in shadow mode and the fallback", () => {
  const { name: _, ...shared } = rule({ limit_keys: [], algorithm_config: { rps: 1, burst: 3 } });
  const trial = rule({ name: "trial", limit_keys: [], shadow: true });
  const document = { rules: [rule({ match: { "header:x-a": "1" } }), trial], fallback_limit: shared };
  const matched = { headers: { "x-a": "1" } };

  test("a rule that is tried does not keep the fallback from a request, until it is enforced", () => {
    const { took, policies } = start(document);
    expect([took({}), took(matched)]).toEqual([
      ["trial 9", "fallback_limit 2"],
      ["api 9", "trial 8"],
    ]);
    policies.setShadow("trial", false);
    expect(took({})).toEqual(["trial 7"]);
    policies.setShadow("trial", true);
    expect(took({})).toEqual(["trial 6", "fallback_limit 1"]);
  });

  test("a rule that `setShadow` no longer enforces is not replaced by the fallback", () => {
    const { took, policies } = start({ ...document, rules: [rule({ limit_keys: [] })] });
    for (const shadow of [true, true, false, true]) policies.setShadow("api", shadow);
    expect([took({}), took({})]).toEqual([["api 9"], ["api 8"]]);
  });
});

describe("the bucket of a request", () => {
  test("a missing part of a key counts as a distinct value: all requests without it share one bucket", () => {
    const { took } = start({ rules: [rule({ limit_keys: ["jwt:org", "header:x-project"] })] });
    const take = (org: unknown, project?: string) =>
      took({ claims: { org }, headers: project === undefined ? {} : { "x-project": project } })?.[0];
    expect([take("a"), take("a"), take("a", ""), take("a", "-"), take(undefined), take({}), take("a", "-")]).toEqual([
      "api 9",
      "api 8",
      "api 9",
      "api 9",
      "api 9",
      "api 8",
      "api 8",
    ]);
  });

  test("a value of a megabyte is hashed: equal values share a bucket, and different ones do not", () => {
    const { took } = start({ rules: [rule()] });
    const long = "k".repeat(1 << 20);
    const take = (key: string) => took({ headers: { "x-api-key": key } });
    expect([take(`${long}1`), take(`${long}2`), take(`${long}1`)]).toEqual([["api 9"], ["api 9"], ["api 8"]]);
  });

  test("different lists of parts have different keys, overlong ones included", () => {
    const part = fc.option(
      fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("-", "", "1:a", ":", "x".repeat(2000))),
      {
        nil: undefined,
      },
    );
    const parts = fc.array(part, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        const same = a.length === b.length && a.every((one, i) => one === b[i]);
        expect(policyKey(...a) === policyKey(...b)).toBe(same);
        expect(new TextEncoder().encode(policyKey(...a)).length).toBeLessThanOrEqual(1024);
      }),
      { numRuns: 300 },
    );
    expect([policyKey(), policyKey(undefined), policyKey("")]).toEqual([undefined, "-", "0:"]);
  });
});

describe("the cost of a request", () => {
  const hostile = ["-1", "NaN", "1e308", "Infinity", "0x10", "", " ", "1,1", "1, 1", "__proto__", "9".repeat(1 << 20)];

  test("a client's cost is clamped to its bounds; an invalid number costs the default, never less", () => {
    const cost = { source: "header:x-cost", default: 2, min: 1, max: 10 } as const;
    const { policies, clock } = start({ rules: [rule({ cost, algorithm_config: { rps: 1000, burst: 1000 } })] });
    const taken = (text: string | string[] | undefined) => {
      clock.advance(10 * SECOND);
      const [decision] =
        policies.limit({ headers: { "x-api-key": "a", ...(text === undefined ? {} : { "x-cost": text }) } })
          ?.decisions ?? [];
      return 1000 - (decision?.value ?? Number.NaN);
    };
    for (const text of [...hostile, ["-5", "5e1"], undefined]) expect(taken(text), String(text).slice(0, 20)).toBe(2);
    expect(["5", "0", "10", "11", "2.5", "99999999999999999999"].map(taken)).toEqual([5, 1, 10, 10, 2.5, 10]);
  });

  test("without bounds it takes at most what the limit grants, for each tier", () => {
    const tiers = { by: "jwt:plan", settings: { pro: { rps: 1, burst: 50 } } } as const;
    const { took } = start({ rules: [rule({ cost: { source: "query:n" }, tiers })] });
    expect(took({ url: "/?n=9999", headers: { "x-api-key": "a" } })).toEqual(["api 0"]);
    expect(took({ url: "/?n=9999", headers: { "x-api-key": "b" }, claims: { plan: "pro" } })).toEqual(["api 0"]);
    expect(took({ url: "/?n=4&n=1", headers: { "x-api-key": "c" } })).toEqual(["api 6"]);
  });

  test("a reservation goes below zero, down to the maximum debt", () => {
    const config = { rate: 1, period: 1000, capacity: 0, maxReserved: 2 };
    const { policies } = start({ rules: [rule({ reserve: true, algorithm_config: config })] });
    const waits = [1, 2, 3].map(() => policies.limit({ headers: {} })?.decisions[0]);
    expect(waits.map((decision) => [decision?.ok, decision?.retryAfter])).toEqual([
      [true, 1000],
      [true, 2000],
      [false, 1000],
    ]);
  });
});

describe("tiers", () => {
  const tiers = { by: "jwt:plan", settings: { pro: { rps: 10, burst: 100 } } } as const;

  test("apply their own numbers to the same state: changing plans keeps debts", () => {
    const { took, clock } = start({ rules: [rule({ limit_keys: ["jwt:sub"], tiers, cost: 10 })] });
    const take = (plan: string) => took({ claims: { sub: "a", plan } });
    expect(take("free")).toEqual(["api 0"]);
    expect(take("pro")).toEqual(["api denied"]);
    clock.advance(10 * SECOND);
    expect(take("pro")).toEqual(["api 90"]);
    expect(take("free")).toEqual(["api 0"]);
    expect(take("__proto__")).toEqual(["api denied"]);
  });
});

describe("reload", () => {
  const request = { headers: { "x-api-key": "a" } };

  test("a reload keeps debts: a lowered capacity applies immediately, a raised one fills", () => {
    const { policies, clock, took } = start({ rules: [rule()] });
    const { key, config } = { key: policyKey("a") as string, config: policies.configOf("api") };
    policies.limiter.charge("api", { key, config, count: 15 });
    policies.reload({ rules: [rule({ algorithm_config: { rps: 1, burst: 100 } })] });
    expect(policies.limit(request)).toMatchObject({ ok: false, retryAfter: 6000 });
    clock.advance(20 * SECOND);
    policies.reload({ rules: [rule({ algorithm_config: { rps: 1, burst: 4 } })] });
    expect(took(request)).toEqual(["api 3"]);
    policies.reload({ rules: [rule({ algorithm_config: { rps: 1, burst: 100 } })] });
    clock.advance(10 * SECOND);
    expect(took(request)).toEqual(["api 12"]);
  });

  test("another algorithm on the same state keeps debts too", () => {
    const { policies, clock } = start({ rules: [rule()] });
    policies.limiter.charge("api", { key: policyKey("a") as string, config: policies.configOf("api"), count: 15 });
    policies.reload({ rules: [rule({ algorithm: "fixed_window", algorithm_config: { rate: 3, period: 1000 } })] });
    expect(policies.limit(request)?.ok).toBe(false);
    clock.advance(3 * SECOND);
    expect(policies.limit(request)?.ok).toBe(true);
  });

  test("an invalid document throws, and the previous one stays in force", () => {
    const { policies, took } = start({ rules: [rule()] });
    expect(took(request)).toEqual(["api 9"]);
    for (const bad of [{ rules: [] }, "{", { rules: [rule(), rule()] }, null as unknown as object]) {
      expect(() => policies.reload(bad)).toThrow(/the policy document has a mistake/);
    }
    expect(took(request)).toEqual(["api 8"]);
    expect(policies.configOf("api")).toMatchObject({ rate: 1, capacity: 10 });
  });

  test("a decision in progress keeps the rules that it started with", async () => {
    let verify: (claims: object) => void = () => {};
    const claims = () => new Promise<object>((done) => (verify = done));
    const policies = definePolicies({ rules: [rule({ match: { "jwt:plan": "pro" } })] }, { claims });
    const selected = policies.select({}, {}, () => "user");
    policies.reload({ rules: [rule({ name: "other" })] });
    verify({ plan: "pro" });
    expect((await selected).map(({ name }) => name)).toEqual(["api"]);
  });
});

describe("invalid arguments", () => {
  test("claims are required if the document reads them, at the start and on a reload", () => {
    const sentence =
      '`claims` must be a function that returns the claims of a verified token: rule "enterprise" reads jwt:plan; got undefined';
    expect(() => definePolicies(PLANS)).toThrow(sentence);
    const policies = definePolicies({ rules: [rule()] });
    expect(() => policies.reload(PLANS)).toThrow(sentence);
    expect(policies.names).toEqual(["api"]);
    expect(() => definePolicies({ rules: [rule({ limit_keys: ["jwt:sub"] })] })).toThrow(/rule "api" reads jwt:sub/);
    const tiers = { by: "jwt:plan", settings: { pro: { rps: 1, burst: 50 } } } as const;
    expect(() => definePolicies({ rules: [rule({ tiers })] })).toThrow(/rule "api" reads jwt:plan/);
    expect(() => policies.limit({ claims: "token" as never })).toThrow("`claims` must be an object");
    const verifying = Promise.resolve({ plan: "enterprise" });
    expect(() => policies.limit({ claims: verifying })).toThrow("got a promise; `await` it first");
    expect(() => policies.limit(verifying as never)).toThrow(
      "`request` must be an object; got a promise; `await` it first",
    );
    expect(() => policies.limit([] as never)).toThrow("`request` must be an object; got an array");
  });

  test("a log of its own has the failures of the store", async () => {
    const lines: string[] = [];
    const log = { error: (line: string) => void lines.push(line), info: () => {} };
    const store = behind(() => Promise.reject(new Error("no route")), "broken");
    const policies = definePolicies({ rules: [rule()] }, { store, log });
    expect(await policies.limit({ headers: {} })).toMatchObject({ ok: false, degraded: true });
    expect(lines).toEqual([expect.stringMatching(/^tidegate: broken: .*no route/)]);
  });

  test("a wrong option and the name of an unknown rule throw; an unknown tier has the rule's own limit", () => {
    expect(() => definePolicies(PLANS, { claims: {} as never })).toThrow("`claims` must be a function");
    expect(() => definePolicies(PLANS, { stroe: 1 } as never)).toThrow("`stroe` must be absent");
    const policies = definePolicies({ rules: [rule({ tiers: { by: "header:x", settings: { a: { rps: 5 } } } })] });
    expect(() => policies.configOf("b")).toThrow('`name` must be one of the rules in force: api; got "b"');
    expect([policies.configOf("api"), policies.configOf("api", "a"), policies.configOf("api", "b")]).toMatchObject([
      { rate: 1 },
      { rate: 5 },
      { rate: 1 },
    ] satisfies Partial<Config>[]);
  });
});

test("a URL that is no text is a mistake that is named", () => {
  const rule = {
    name: "api",
    limit_keys: ["query:q"],
    algorithm: "token_bucket",
    algorithm_config: { rps: 1 },
  } as const;
  const policies = definePolicies({ rules: [rule] });
  expect(() => policies.limit({ url: new URL("http://localhost/?q=1") as never })).toThrow(
    "`url` must be a string, or absent",
  );
});
