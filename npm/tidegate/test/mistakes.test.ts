/** Messages for common mistakes, word for word. `any` is used where the compiler would refuse the mistake. */
import { describe, expect, expectTypeOf, test } from "vitest";
import { readRateLimit, throttle } from "../src/client/index.ts";
import { appendRateLimitHeaders, clientIp, problem, rateLimitHeaders } from "../src/http/index.ts";
import { defineLimits, MINUTE } from "../src/index.ts";
import { rateLimit as express } from "../src/middleware/express.ts";
import { rateLimit as fastify } from "../src/middleware/fastify.ts";
import { rateLimit as fetchHandler } from "../src/middleware/fetch.ts";
import { rateLimit as hono, rateLimitBinding } from "../src/middleware/hono.ts";
import { rateLimitAction } from "../src/middleware/next.ts";
import { rateLimit as node, rateLimitMiddleware as middleware } from "../src/middleware/node.ts";
import { metrics } from "../src/observe/index.ts";
import { definePolicies, policyTarget } from "../src/policies/index.ts";
import { transactional } from "../src/stores/transactional.ts";
import { there } from "./realm.ts";
import { any, throwEach } from "./throw-each.ts";

const bucket = { kind: "token bucket", rate: 10, period: MINUTE } as const;
const limits = defineLimits({ sendMessage: bucket, freeTrial: { ...bucket, kind: "fixed window" } });
const policies = definePolicies({
  rules: [
    { name: "api", limit_keys: ["header:a", "header:b"], algorithm: "token_bucket", algorithm_config: { rps: 1 } },
  ],
});

test("`names` lists the limits", () => {
  expect(limits.names).toEqual(["sendMessage", "freeTrial"]);
  expectTypeOf(limits.names).toEqualTypeOf<readonly ("sendMessage" | "freeTrial")[]>();
});

test("on a store that returns promises the call itself throws, before there is a promise", () => {
  const on = defineLimits({ api: bucket }, { store: transactional({ name: "promising", transaction: any(() => {}) }) });
  for (const call of [
    () => on.limit(any("apo")),
    () => on.limit("api", { key: any(undefined) }),
    () => on.limitMany("api", [""]),
    () => on.limitAll([]),
    () => on.getValue("api", { key: "" }),
    () => on.reset("api", any({ count: 1 })),
    () => on.block("api", { for: 0 }),
  ]) {
    expect(call).toThrow(expect.objectContaining({ code: "TIDEGATE_INPUT" }));
  }
});

describe("a wrong name throws", () => {
  const NAMES = '`name` must be one of the limits defined: "sendMessage", "freeTrial"; got ';
  const many = defineLimits(Object.fromEntries(Array.from({ length: 22 }, (_, i) => [`route${i}`, bucket])));
  const twenty = Array.from({ length: 20 }, (_, i) => `"route${i}"`).join(", ");
  throwEach([
    ["misspelt", () => limits.limit(any("sendMesage")), `${NAMES}"sendMesage"; did you mean "sendMessage"?`],
    ["in another case", () => limits.reset(any("freetrial")), `${NAMES}"freetrial"; did you mean "freeTrial"?`],
    [
      "misspelt in a middleware, before a request comes",
      () => express(limits, { name: any("sendmessage") }),
      `${NAMES}"sendmessage"; did you mean "sendMessage"?`,
    ],
    [
      "misspelt in a throttle, before it is called",
      () => throttle(() => 1, { limiter: limits, name: any("freetrail") }),
      `${NAMES}"freetrail"; did you mean "freeTrial"?`,
    ],
    ["of nothing near", () => limits.check(any("login")), `${NAMES}"login"`],
    ["left out", () => limits.limit(any()), `${NAMES}undefined`],
    ["of many", () => many.limit("x"), `\`name\` must be one of the limits defined: ${twenty}, and 2 more; got "x"`],
    ["of none", () => defineLimits({}).limit(any("x")), '`name` must be one of the limits defined: none is; got "x"'],
    [
      "with a space",
      () => defineLimits({ "send message": bucket }),
      '`name` must be 1 to 64 characters of A-Z a-z 0-9 _ . -; got "send message" (in the limit "send message")',
    ],
    [
      "of a megabyte",
      () => defineLimits({ ["a".repeat(2 ** 20)]: bucket }),
      `\`name\` must be 1 to 64 characters of A-Z a-z 0-9 _ . -; got "${"a".repeat(80)}…" (in the limit "${"a".repeat(80)}…")`,
    ],
  ]);
});

describe("a wrong policy throws", () => {
  const made = (policy: object) => () => defineLimits({ chat: any(policy) });
  const IN = ' (in the limit "chat")';
  const fields = (more: string) => `kind, rate, period, capacity, maxReserved, ${more}shards, onStoreError, timeout`;
  const BUCKET = `absent: a token bucket has ${fields("")}`;
  throwEach([
    [
      "with a field misspelt",
      made({ ...bucket, capcity: 20 }),
      `\`capcity\` must be ${BUCKET}; got 20; did you mean \`capacity\`?${IN}`,
    ],
    ["with another library's field", made({ ...bucket, points: 5 }), `\`points\` must be ${BUCKET}; got 5${IN}`],
    [
      "in the words of another library",
      made({ windowMs: 60_000, max: 5 }),
      `\`windowMs\` must be absent: a limit has ${fields("start, ")}; got 60000${IN}`,
    ],
    [
      "of a kind misspelt",
      made({ ...bucket, kind: "token-bucket" }),
      `\`kind\` must be "token bucket" or "fixed window"; got "token-bucket"; did you mean "token bucket"?${IN}`,
    ],
    [
      "of a kind that there is not",
      made({ ...bucket, kind: "sliding window" }),
      `\`kind\` must be "token bucket" or "fixed window"; got "sliding window"${IN}`,
    ],
    [
      "whose period is in words",
      made({ ...bucket, period: "1 min" }),
      `\`period\` must be an integer of ms from 1 to 1099511627776, or a string such as "15m"; got "1 min"${IN}`,
    ],
    [
      "without a period",
      made({ kind: "token bucket", rate: 1 }),
      `\`period\` must be an integer of ms from 1 to 1099511627776; got undefined${IN}`,
    ],
    [
      "that grants nothing",
      made({ ...bucket, rate: 0 }),
      `\`rate\` must be a finite number of tokens above 0 and up to 1099511627776; got 0${IN}`,
    ],
    ...(["first hit", Number.POSITIVE_INFINITY, null] as const).map((start): [string, () => unknown, string] => [
      `whose window starts at ${start}`,
      made({ ...bucket, kind: "fixed window", start: any(start) }),
      `\`start\` must be "first request", or an integer of ms from -4503599627370496 to 4503599627370496${typeof start === "string" ? ', or a string such as "15m"' : ""}; got ${typeof start === "string" ? `"${start}"` : start}${IN}`,
    ]),
    ["that is none", made(any(5)), `\`config\` must be an object with kind, rate and period; got 5${IN}`],
    ["in place of all", () => defineLimits(any()), "`limits` must be an object of limits by name; got undefined"],
    [
      "a promise of limits",
      () => defineLimits(any(Promise.resolve({}))),
      "`limits` must be an object of limits by name; got [object Promise]",
    ],
    [
      "a map of limits",
      () => defineLimits(any(new Map())),
      "`limits` must be an object of limits by name; got [object Map]",
    ],
    [
      "with a promise of options, whose store would be left out",
      () => defineLimits({ api: bucket }, any(Promise.resolve({ onStoreError: "deny" }))),
      "`options` must be an object, such as { store }; got a promise; `await` it first",
    ],
  ]);
});

/** An object that no code can read. */
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

describe("a wrong call throws", () => {
  const KEY =
    "`key` must be a string of at most 1024 bytes in UTF-8, and not empty; leave it out for one limit that all share; got ";
  const COUNT = "`count` must be a finite number of tokens from 0 to 1099511627776; got ";
  const call = (options: unknown) => () => limits.limit("sendMessage", any(options));
  throwEach([
    ["the key alone", call("user 7"), '`options` must be an object, such as { key, count }; got "user 7"'],
    ["null", call(null), "`options` must be an object, such as { key, count }; got null"],
    ["an array", call([]), "`options` must be an object, such as { key, count }; got an array"],
    [
      "a promise",
      call(Promise.resolve({ key: "user 7" })),
      "`options` must be an object, such as { key, count }; got a promise; `await` it first",
    ],
    [
      "a promise of another realm",
      call(there("Promise.resolve()")),
      "`options` must be an object, such as { key, count }; got a promise; `await` it first",
    ],
    [
      "a request, whose fields are no own ones",
      call(new Request("http://a.example/")),
      "`options` must be an object, such as { key, count }; got [object Request]",
    ],
    [
      "a map",
      call(new Map([["key", "user 7"]])),
      "`options` must be an object, such as { key, count }; got [object Map]",
    ],
    ["a number as the key", call({ key: 7 }), `${KEY}7`],
    ["an object as the key", call({ key: { id: 7 } }), `${KEY}an object`],
    ["an array as the key", call({ key: ["a", "b"] }), `${KEY}an array`],
    ["a promise as the key", call({ key: Promise.resolve("ann") }), `${KEY}a promise; \`await\` it first`],
    ["a revoked proxy as the key, as a draft of Immer's becomes one", call({ key: revoked() }), `${KEY}an object`],
    ["no user as the key", call({ key: null }), `${KEY}null`],
    ["a count that is no number", call({ count: Number("ten") }), `${COUNT}NaN`],
    ["a count below 0", call({ count: -1 }), `${COUNT}-1`],
    ["a count from a query string", call({ count: "5" }), `${COUNT}"5"`],
    [
      "an option misspelt",
      call({ kye: "a" }),
      '`kye` must be absent: limit has key, count, reserve, throws, config; got "a"; did you mean `key`?',
    ],
    [
      "a count of null for several keys",
      () => limits.limitMany("sendMessage", ["a"], any({ count: null })),
      `${COUNT}null`,
    ],
    [
      "several in one object",
      () => limits.limitAll(any({ name: "sendMessage" })),
      "`requests` must be an array of 1 to 100 requests; got an object",
    ],
    [
      "several, by name alone",
      () => limits.limitAll(any(["sendMessage"])),
      '`request` must be an object, such as { name, key }; got "sendMessage"',
    ],
  ]);

  test("a call without a key is on the limit that all share", () => {
    const one = defineLimits({ all: { ...bucket, rate: 1 } });
    expect([one.limit("all").ok, one.limit("all", { count: 1 }).ok]).toEqual([true, false]);
  });

  test.each([undefined, ""])("the key %j is an error in every call, and takes nothing", (key) => {
    const one = defineLimits({ all: { ...bucket, rate: 1 } });
    const options = { key } as { key: string };
    const calls = [
      () => one.limit("all", options),
      () => one.check("all", options),
      () => one.give("all", options),
      () => one.charge("all", options),
      () => one.block("all", { ...options, for: 1000 }),
      () => one.unblock("all", options),
      () => one.reset("all", options),
      () => one.getValue("all", options),
      () => one.limitAll([{ name: "all", ...options }]),
      () => one.checkAll([{ name: "all", ...options }]),
      () => one.limitMany("all", [options.key]),
    ];
    const rule = "a string of at most 1024 bytes in UTF-8, and not empty; leave it out for one limit that all share";
    for (const call of calls) expect(call).toThrow(`\`key\` must be ${rule}; got ${key === "" ? '""' : "undefined"}`);
    expect([one.limit("all").ok, one.limit("all", { key: "k" }).ok]).toEqual([true, true]);
  });

  test("one name in two limiters has two states: each limiter has its own memory store", () => {
    const [one, other] = [1, 2].map(() => defineLimits({ all: { ...bucket, rate: 1 } }));
    expect([one?.limit("all").ok, other?.limit("all").ok, one?.limit("all").ok]).toEqual([true, true, false]);
  });
});

describe("a wrong middleware throws", () => {
  const LIMITER = "`limiter` must be what defineLimits returns; got ";
  const ITSELF = "a request; mount what rateLimit(limits, options) returns, not rateLimit itself";
  const [request, response] = [{ headers: {} }, { setHeader: () => {} }];
  const NEXT = "`next` must be a function; where handlers take a Request or an event use tidegate/fetch; got undefined";
  const next = () => {};
  throwEach([
    ["Express: app.use(rateLimit)", () => express(any(request), any(response)), LIMITER + ITSELF],
    ["Fastify: addHook(…, rateLimit)", () => fastify(any({ raw: request }), any({})), LIMITER + ITSELF],
    [
      "Hono: app.use(rateLimit)",
      () =>
        hono(
          any({ req: {} }),
          any(() => {}),
        ),
      LIMITER + ITSELF,
    ],
    ["options alone", () => express(any({ name: "sendMessage" }), any()), `${LIMITER}an object with name`],
    ["no options", () => express(limits, any()), "`options` must be an object with name or limits; got undefined"],
    [
      "Fetch: no handler",
      () => fetchHandler(limits, { name: "sendMessage" }, any()),
      "`handler` must be a function, after the options: rateLimit(limits, options, handler); got undefined",
    ],
    [
      "Express: in h3, as (event, next)",
      () => express(limits, { name: "sendMessage" })(any({}), any(next), any()),
      NEXT,
    ],
    [
      "node:http: in h3, as (event, next)",
      () => middleware(limits, { name: "sendMessage" })(any({}), any(next), any()),
      NEXT,
    ],
    [
      "node:http: no listener",
      () => node(limits, { name: "sendMessage" }, any({})),
      "`listener` must be a function, after the options: rateLimit(limits, options, listener); got an object",
    ],
    [
      "Next.js: no action",
      () => rateLimitAction(limits, { name: "sendMessage", key: () => "a" }, any()),
      "`action` must be a function, after the options: rateLimitAction(limits, options, action); got undefined",
    ],
    [
      "a denied response that is no function",
      () => express(limits, any({ name: "sendMessage", denied: "slow down" })),
      '`denied` must be a function; got "slow down"',
    ],
    [
      "a binding of a name that is not defined",
      () => rateLimitBinding(limits, any("sendMesage")),
      '`name` must be one of the limits defined: "sendMessage", "freeTrial"; got "sendMesage"; did you mean "sendMessage"?',
    ],
    ["the name alone", () => express(limits, any("a")), '`options` must be an object with name or limits; got "a"'],
  ]);
});

describe("a wrong argument of a function outside of the limiter throws", () => {
  const createCounter = () => {};
  throwEach([
    [
      "clientIp: no request",
      () => clientIp(any(null)),
      "`request` must be a request, or an object with address and headers; got null",
    ],
    [
      "appendRateLimitHeaders: no response",
      () => appendRateLimitHeaders(any({}), limits.check("sendMessage")),
      "`target` must be a Headers, or a response of node:http; got an object",
    ],
    [
      "metrics: no meter",
      () => metrics(any(null)),
      '`meter` must be a meter of @opentelemetry/api, such as metrics.getMeter("tidegate"); got null',
    ],
    [
      "metrics: a misspelt option",
      () =>
        metrics(
          any({ createCounter, createHistogram: createCounter, createObservableCounter: createCounter }),
          any({ stores: 1 }),
        ),
      "`stores` must be absent: metrics has store; got 1; did you mean `store`?",
    ],
    [
      "policyTarget: a symbol in a key",
      () => policyTarget(policies, { name: "api", key: any([Symbol("a"), null]) }),
      "`key[0]` must be a string, or null for a value that the request lacks; got a symbol",
    ],
    [
      "policyTarget: a number in a key, which has no length",
      () => policyTarget(policies, { name: "api", key: any(["a", 7]) }),
      "`key[1]` must be a string, or null for a value that the request lacks; got 7",
    ],
    [
      "rateLimitHeaders: a jitter without a key, on a grant, where it changes nothing",
      () => rateLimitHeaders(limits.check("sendMessage"), any({ jitter: { fraction: 0.5 } })),
      "`key` must be a string; got undefined",
    ],
    [
      "problem: a jitter that is none, on a grant",
      () => problem(limits.check("sendMessage"), any({ jitter: 0.5 })),
      "`options` must be an object with key; got 0.5",
    ],
    [
      "readRateLimit: a plain object of headers",
      () => readRateLimit(any({})),
      "`fields` must be a Headers, such as response.headers; got an object",
    ],
  ]);
});

test("a limiter in Vue's reactive() or ref() stays itself: they make a proxy of what has the tag 'Object'", () => {
  expect(Object.prototype.toString.call(limits)).toBe("[object Limiter]");
});

test("the methods of a limiter work when they are taken out of it, through a proxy such as valtio's, and inherited", () => {
  const made = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE, capacity: 9 } });
  const { limit, block, limitAll } = made;
  expect(limit("api").remaining).toBe(8);
  expect(limitAll([{ name: "api" }]).decisions[0]?.remaining).toBe(7);
  expect(new Proxy(made, {}).limit("api").remaining).toBe(6);
  expect((Object.create(made) as typeof made).limit("api").remaining).toBe(5);
  // What valtio makes of an object: one of its class, with its own properties.
  const copy = Object.create(Object.getPrototypeOf(made), Object.getOwnPropertyDescriptors(made)) as typeof made;
  expect(copy.limit("api").remaining).toBe(4);
  expect(block("api", { for: MINUTE }).retryAfter).toBe(MINUTE);
  expect(Object.keys(made)).toEqual(["store", "names"]);
});
