/** How rules are enforced: in shadow mode, without their store, and with blocks. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AllDecision, type Decision, memory, MINUTE, RateLimitError, SECOND } from "../../src/index.ts";
import { appendRateLimitHeaders, rateLimitHeaders, statusOf } from "../../src/http/index.ts";
import { decisionOf, type FetchOptions, rateLimit } from "../../src/middleware/fetch.ts";
import { metrics, observe } from "../../src/observe/index.ts";
import { definePolicies, type PolicyRule } from "../../src/policies/index.ts";
import type { Store } from "../../src/stores/index.ts";
import { fakeClock } from "../../src/testing/clock.ts";
import { later } from "../middleware/later.ts";
import { behind } from "../behind.ts";

const rule = (name: string, capacity: number, fields: Partial<PolicyRule> = {}): PolicyRule => ({
  name,
  limit_keys: [],
  algorithm: "token_bucket",
  algorithm_config: { rate: 1, period: "1s", capacity },
  ...fields,
});
const hello = () => new Response("hello");

function start(rules: readonly PolicyRule[], store: Store = memory(), options: object = {}) {
  const clock = fakeClock();
  const policies = definePolicies({ rules }, { store, now: clock.now, log: false });
  const send = async () => {
    const handler = rateLimit(
      policies.limiter,
      { limits: policies, jitter: 0, ...options } as FetchOptions<Request, never>,
      hello,
    );
    const request = new Request("https://app.example/");
    const { status, headers } = await handler(request);
    return {
      status,
      fields: headers.get("ratelimit"),
      wait: headers.get("retry-after"),
      decision: decisionOf(request),
    };
  };
  const left = async (name: string) => {
    const { value } = await policies.limiter.getValue(name, { config: policies.configOf(name) });
    return value;
  };
  return { clock, policies, send, left };
}

/** A store that fails for every call. */
const failing = () => behind(() => Promise.reject(new Error("no route")), "broken");

describe.each([
  ["in memory", () => memory()],
  ["on an asynchronous store", later],
] as const)("a rule in shadow mode, %s", (_, store) => {
  const trial = rule("trial", 1, { shadow: true });

  test("a hole beside it is refused, as without it, and takes nothing", async () => {
    const { policies, left } = start([trial], store());
    // biome-ignore lint/suspicious/noSparseArray: the mistake
    const requests = [{ name: "trial", config: policies.configOf("trial") }, ,] as never;
    await expect(async () => policies.limiter.limitAll(requests)).rejects.toThrow("`request` must be an object");
    expect(await left("trial")).toBe(1);
  });

  test("denies no request, and its decisions have what it decided", async () => {
    const { policies } = start([rule("api", 5), trial], store());
    const decided = [await policies.limit({}), await policies.limit({})];
    expect(decided.map((one) => [one?.ok, one?.retryAt])).toEqual(Array(2).fill([true, undefined]));
    const shadows = decided.map((one) => one?.decisions[1]);
    expect(shadows[0]).toMatchObject({ ok: true, value: 0, shadow: { ok: true, retryAfter: undefined } });
    expect(shadows[1]).toMatchObject({ ok: true, value: 0, shadow: { ok: false, retryAfter: SECOND } });
    expect(shadows[1]?.retryAfter).toBeUndefined();
    expect(decided[0]?.decisions[0]).not.toHaveProperty("shadow");
  });

  test("adds no fields to a response, denied or not", async () => {
    const { send } = start([trial, rule("api", 2)], store());
    expect(await send()).toMatchObject({ status: 200, fields: '"api";r=1;t=1', wait: null });
    const second = await send();
    expect(second).toMatchObject({ status: 200, fields: '"api";r=0;t=1', wait: null });
    expect(second.decision?.policy.name).toBe("api");
    const denied = await send();
    expect(denied).toMatchObject({ status: 429, fields: '"api";r=0;t=1', wait: "1" });
    expect(denied.decision?.policy.name).toBe("api");
  });

  test("alone allows every request, without fields", async () => {
    const { send, policies } = start([trial], store());
    expect(await send()).toMatchObject({ status: 200, fields: null, wait: null });
    const second = await send();
    expect(second).toMatchObject({
      status: 200,
      fields: null,
      wait: null,
      decision: { ok: true, shadow: { ok: false } },
    });
    const decided = await policies.limit({});
    expect(decided === undefined ? undefined : [rateLimitHeaders(decided), statusOf(decided)]).toEqual([{}, 200]);
  });

  test("takes nothing where an enforced rule denies, and what it decides changes no other rule", async () => {
    const second = rule("second", 10, { shadow: true });
    const { policies, left } = start([trial, second, rule("api", 2)], store());
    for (const ok of [true, true, false, false]) expect((await policies.limit({}))?.ok).toBe(ok);
    expect([await left("trial"), await left("second"), await left("api")]).toEqual([0, 8, 0]);
  });

  test("allows direct calls with its config too, which throw nothing", async () => {
    const { policies, left } = start([trial], store());
    const call = { config: policies.configOf("trial"), throws: true };
    for (const ok of [true, false]) {
      expect(await policies.limiter.limit("trial", call)).toMatchObject({ ok: true, shadow: { ok } });
    }
    const checked = await policies.limiter.check("trial", call);
    expect(checked).toMatchObject({ ok: true, shadow: { ok: false } });
    const headers = new Headers();
    appendRateLimitHeaders(headers, checked);
    expect([...headers]).toEqual([]);
    const all = await policies.limiter.checkAll([{ name: "trial", config: call.config }]);
    expect(all).toMatchObject({ ok: true, decisions: [{ ok: true, shadow: { ok: false } }] });
    expect(await left("trial")).toBe(0);
  });

  test("reserves without a wait for the request", async () => {
    const { policies } = start([rule("trial", 0, { shadow: true, reserve: true })], store());
    const decided = await policies.limit({});
    expect(decided).toMatchObject({ ok: true, retryAt: undefined });
    expect(decided?.decisions[0]).toMatchObject({ reserved: false, shadow: { reserved: true, retryAfter: SECOND } });
  });

  test("gets back only the tokens that it took", async () => {
    const { send, left } = start([trial, rule("api", 9)], store(), { settle: () => 0 });
    await send();
    expect([await left("trial"), await left("api")]).toEqual([1, 9]);
    const denying = start([rule("trial", 1, { shadow: true, cost: 0.75 }), rule("api", 9)], store());
    await denying.send();
    const config = denying.policies.configOf("trial");
    await rateLimit(
      denying.policies.limiter,
      { limits: denying.policies, settle: () => 0 },
      hello,
    )(new Request("https://a.b"));
    expect(await denying.policies.limiter.getValue("trial", { config })).toMatchObject({ value: 0.25 });
  });

  test("a mistake in a direct call takes nothing from any limit", async () => {
    const { policies, left } = start([trial, rule("api", 5)], store());
    const request = (name: string, count: number) => ({ name, count, config: policies.configOf(name) });
    const call = async () => policies.limiter.limitAll([request("api", 1), request("trial", -1)]);
    await expect(call()).rejects.toThrow("`count` must be");
    expect(await left("api")).toBe(5);
  });
});

describe("setShadow", () => {
  test("lets the denied through from the next request on, and enforces the rule again, with its state", async () => {
    const { policies, send, left } = start([rule("api", 1), rule("other", 9)]);
    await send();
    expect(await send()).toMatchObject({ status: 429 });
    policies.setShadow("api", true);
    expect([policies.isShadow("api"), policies.isShadow("other")]).toEqual([true, false]);
    const decided = await policies.limit({});
    expect(decided).toMatchObject({ ok: true, decisions: [{ ok: true, shadow: { ok: false } }, { ok: true }] });
    expect(await send()).toMatchObject({ status: 200, fields: '"other";r=6;t=6', wait: null });
    policies.setShadow("api", false);
    expect(policies.isShadow("api")).toBe(false);
    expect(await send()).toMatchObject({ status: 429 });
    expect([await left("api"), await left("other")]).toEqual([0, 6]);
  });

  test("is for every tier of the rule, for the fallback, and for direct calls", async () => {
    const tiers = { by: "header:x-plan" as const, settings: { pro: { rate: 1, period: "1h" as const, capacity: 1 } } };
    const document = { rules: [rule("plans", 1, { tiers })], fallback_limit: rule("rest", 1) };
    const policies = definePolicies(document, { now: () => 0 });
    for (const name of policies.names) policies.setShadow(name, true);
    for (const ok of [true, false]) {
      const decided = policies.limit({ headers: { "x-plan": "pro" } });
      expect(decided).toMatchObject({ ok: true, decisions: [{ shadow: { ok } }] });
    }
    policies.limiter.limit("rest", { config: policies.configOf("rest") });
    expect(policies.limiter.limit("plans", { config: policies.configOf("plans", "pro") }).ok).toBe(true);
    expect(policies.limiter.limit("rest", { config: policies.configOf("rest") }).ok).toBe(true);
    policies.setShadow("plans", false);
    expect(policies.limit({ headers: { "x-plan": "pro" } })).toMatchObject({ ok: false });
    policies.reload(document);
    expect(policies.isShadow("rest")).toBe(false);
  });

  test("refuses an unknown rule, and a value that is no boolean, and changes nothing", () => {
    const { policies } = start([rule("api", 1)]);
    expect(() => policies.setShadow("apj", true)).toThrow("`name` must be one of the rules in force: api");
    expect(() => policies.isShadow("apj")).toThrow("`name` must be one of the rules in force: api");
    expect(() => policies.setShadow("api", "on" as never)).toThrow('`shadow` must be true or false; got "on"');
    expect(policies.isShadow("api")).toBe(false);
  });
});

test("rules in shadow mode change no decision of the others", () => {
  const capacity = fc.integer({ min: 1, max: 4 });
  const steps = fc.array(fc.integer({ min: 0, max: 1500 }), { maxLength: 30 });
  fc.assert(
    fc.property(
      fc.array(capacity, { minLength: 1, maxLength: 3 }),
      fc.array(capacity, { maxLength: 3 }),
      steps,
      (own, more, waits) => {
        const enforced = own.map((size, i) => rule(`own${i}`, size));
        const shadows = more.map((size, i) => rule(`more${i}`, size, { shadow: true }));
        const [plain, tried] = [start(enforced), start([...shadows, ...enforced])];
        for (const wait of waits) {
          for (const { clock } of [plain, tried]) clock.advance(wait);
          const [a, b] = [plain.policies.limit({}), tried.policies.limit({})];
          const { decisions, ...rest } = b as AllDecision;
          expect({ ...rest, decisions: decisions.slice(shadows.length) }).toEqual(a);
          expect(decisions.slice(0, shadows.length).every((one) => one.ok && one.shadow !== undefined)).toBe(true);
        }
      },
    ),
    { numRuns: 100 },
  );
});

test("metrics count what a rule in shadow mode would have denied", () => {
  const counted: unknown[] = [];
  const waits: number[] = [];
  const meter = {
    createCounter: () => ({ add: (_: number, { outcome }: { outcome?: unknown } = {}) => void counted.push(outcome) }),
    createHistogram: () => ({ record: (wait: number) => void waits.push(wait) }),
    createObservableCounter: () => ({ addCallback: () => {} }),
  };
  const { policies } = start([rule("trial", 1, { shadow: true })]);
  const limiter = observe(policies.limiter, metrics(meter));
  const config = policies.configOf("trial");
  for (let i = 0; i < 2; i++) limiter.limitAll([{ name: "trial", config }]);
  expect([counted, waits]).toEqual([["granted", "shadow denied"], []]);
});

describe("without its store", () => {
  test.each<[string, readonly PolicyRule[], number]>([
    ["allow", [rule("a", 1, { onStoreError: "allow" })], 200],
    ["deny", [rule("a", 1, { onStoreError: "deny" })], 503],
    ["the limiter's", [rule("a", 1)], 503],
    ["allow and deny", [rule("a", 1, { onStoreError: "allow" }), rule("b", 1, { onStoreError: "deny" })], 503],
    ["allow, and deny in shadow mode", [rule("a", 1, { onStoreError: "allow" }), rule("b", 1, { shadow: true })], 200],
    ["deny, and allow in shadow mode", [rule("a", 1), rule("b", 1, { onStoreError: "allow", shadow: true })], 503],
    ["deny in shadow mode", [rule("a", 1, { onStoreError: "deny", shadow: true })], 200],
  ])("rules follow their own settings: %s", async (_, rules, status) => {
    const { send } = start(rules, failing());
    expect(await send()).toMatchObject({ status, decision: { degraded: true } });
  });

  test("a local limit has its fraction, for each tier, and is not taken where another rule denies", async () => {
    const tiers = { by: "header:plan", settings: { pro: { rate: 1, period: "1s", capacity: 20 } } } as const;
    const local = rule("local", 4, { onStoreError: { local: 0.5 }, tiers, limit_keys: ["header:plan"] });
    const { policies } = start([local], failing());
    const take = async (plan: string) => (await policies.limit({ headers: { plan } }))?.decisions[0] as Decision;
    expect([await take("free"), await take("free"), await take("free")].map(({ ok, value }) => [ok, value])).toEqual([
      [true, 1],
      [true, 0],
      [false, 0],
    ]);
    expect((await take("pro")).value).toBe(9);
    const both = start([local, rule("closed", 1, { match: { "header:closed": "yes" } })], failing()).policies;
    expect(await both.limit({ headers: { plan: "free", closed: "yes" } })).toMatchObject({ ok: false });
    expect((await both.limit({ headers: { plan: "free" } }))?.decisions[0]?.value).toBe(1);
  });

  test("the log names each way in which calls are decided", async () => {
    const lines: string[] = [];
    const log = { error: (line: string) => void lines.push(line), info: () => {} };
    const rules = [rule("a", 1, { onStoreError: "allow" }), rule("b", 1, { onStoreError: "deny" })];
    await definePolicies({ rules }, { store: failing(), log }).limit({});
    expect(lines).toEqual([
      expect.stringMatching(/its calls are allowed \(onStoreError: "allow"\), or denied \(onStoreError: "deny"\)$/),
    ]);
  });
});

describe.each([
  ["in memory", () => memory()],
  ["on an asynchronous store", later],
] as const)("a rule with a block, %s", (_, store) => {
  const block = { after: 2, for: ["1m", "10m"] } as const;
  const blocking = rule("api", 1, { block });
  const times = async (count: number, send: () => Promise<unknown>) => {
    for (let i = 0; i < count; i++) await send();
  };

  test("blocks with the last of so many denials, longer each time, and not before", async () => {
    const { clock, send } = start([blocking, rule("wide", 99)], store());
    await times(2, send);
    expect(await send()).toMatchObject({ status: 429, wait: "60", decision: { retryAfter: MINUTE } });
    await times(9, send);
    clock.advance(MINUTE);
    expect((await send()).status).toBe(200);
    await send();
    expect(await send()).toMatchObject({ status: 429, wait: "600" });
  });

  test("blocks in policies.limit and in direct calls with its config; checks count nothing", async () => {
    const { policies } = start([blocking], store());
    const call = { config: policies.configOf("api") };
    for (const ok of [true, false]) expect((await policies.limit({}))?.ok).toBe(ok);
    for (let i = 0; i < 5; i++) {
      expect(await policies.limiter.check("api", call)).toMatchObject({ retryAfter: SECOND });
      expect(await policies.limiter.checkAll([{ name: "api", ...call }])).toMatchObject({ retryAfter: SECOND });
    }
    const throwing = async () => policies.limiter.limit("api", { ...call, throws: true });
    const error = await throwing().catch((error: unknown) => error);
    expect(error).toBeInstanceOf(RateLimitError);
    expect(await policies.limiter.check("api", call)).toMatchObject({ retryAfter: MINUTE });
  });

  test("blocks the key that was denied, where the caller uses its object again before the answer", async () => {
    const { policies } = start([blocking], store());
    const { limiter } = policies;
    const config = policies.configOf("api");
    for (let i = 0; i < 3; i++) {
      const call = { config, key: "a" };
      // The last time its fields are those of a prototype.
      const answer = limiter.limit("api", i === 2 ? Object.create(call) : call);
      call.key = "b";
      await answer;
    }
    expect(await limiter.check("api", { config, key: "a" })).toMatchObject({ retryAfter: MINUTE });
  });

  test("blocks the key that was denied in a list too, where a rule in shadow mode takes from the same key", async () => {
    const { policies } = start([blocking, rule("trial", 9, { shadow: true })], store());
    const { limiter } = policies;
    const keyed = (name: string, key: string) => ({ name, key, config: policies.configOf(name) });
    for (let i = 0; i < 3; i++) {
      const calls = [keyed("api", "a"), keyed("trial", "a")];
      // The second time their fields are those of a prototype.
      const answer = limiter.limitAll(i === 1 ? calls.map((call) => Object.create(call)) : calls);
      for (const call of calls) call.key = "b";
      await answer;
    }
    expect(await limiter.check("api", { config: policies.configOf("api"), key: "a" })).toMatchObject({
      retryAfter: MINUTE,
    });
    expect(await limiter.check("trial", { config: policies.configOf("trial"), key: "a" })).toMatchObject({ value: 7 });
  });

  test("does not block in shadow mode, of the rule or of the middleware", async () => {
    for (const { send, policies } of [
      start([rule("api", 1, { block, shadow: true })], store()),
      start([blocking], store(), { shadow: true }),
    ]) {
      for (let i = 0; i < 9; i++) expect((await send()).status).toBe(200);
      const { retryAfter, shadow } = await policies.limiter.check("api", { config: policies.configOf("api") });
      expect((shadow ?? { retryAfter }).retryAfter).toBe(SECOND);
    }
  });

  test("takes the place of the middleware's, which is that of the other rules", async () => {
    const { send, policies } = start([blocking, rule("other", 1)], store(), { block: { after: 3, for: "5m" } });
    await times(3, send);
    const waits = async () => {
      const found = ["api", "other"].map((name) => policies.limiter.check(name, { config: policies.configOf(name) }));
      return (await Promise.all(found)).map(({ retryAfter }) => retryAfter);
    };
    expect(await waits()).toEqual([MINUTE, SECOND]);
    await send();
    expect(await waits()).toEqual([MINUTE, 5 * MINUTE]);
  });

  test("a request that was selected before a reload is enforced as its rule was", async () => {
    const { policies } = start([rule("api", 1, { shadow: true })], store());
    const taken = await policies.select({}, {}, () => "user");
    policies.reload({ rules: [rule("api", 1)] });
    for (let i = 0; i < 2; i++) expect((await policies.limiter.limitAll(taken)).ok).toBe(true);
    expect((await policies.limit({}))?.ok).toBe(false);
  });
});

test("a middleware with another limiter is refused: it would ignore how rules are enforced", () => {
  const { policies } = start([rule("api", 1)]);
  const other = definePolicies({ rules: [rule("api", 1)] });
  expect(() => rateLimit(other.limiter, { limits: policies }, hello)).toThrow(
    "`limiter` must be the `limiter` of the policies in `limits`, such as policies.limiter",
  );
  const observed = observe(
    observe(policies.limiter, () => {}),
    () => {},
  );
  expect(() => rateLimit(observed, { limits: policies }, hello)).not.toThrow();
});
