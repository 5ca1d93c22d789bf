/** Messages for common mistakes, word for word. `any` is used where the compiler would refuse the mistake. */
import { Redis } from "ioredis";
import { MemcacheClient } from "memcache-client";
import pg from "pg";
import { describe, expect, expectTypeOf, test } from "vitest";
import { readRateLimit, throttle } from "../src/client/index.ts";
import { appendRateLimitHeaders, clientIp } from "../src/http/index.ts";
import { defineLimits, InputError, MINUTE } from "../src/index.ts";
import { rateLimit as express } from "../src/middleware/express.ts";
import { rateLimit as fastify } from "../src/middleware/fastify.ts";
import { rateLimit as fetchHandler } from "../src/middleware/fetch.ts";
import { rateLimit as hono, rateLimitBinding } from "../src/middleware/hono.ts";
import { rateLimit as node } from "../src/middleware/node.ts";
import { metrics } from "../src/observe/index.ts";
import { policyKey } from "../src/policies/index.ts";
import { convex } from "../src/stores/convex.ts";
import { denoKv } from "../src/stores/deno-kv.ts";
import { durableObject } from "../src/stores/durable-object.ts";
import { file } from "../src/stores/file.ts";
import { dynamodb } from "../src/stores/dynamodb.ts";
import { memcached } from "../src/stores/memcached.ts";
import { memory } from "../src/stores/memory.ts";
import { mongodb } from "../src/stores/mongodb.ts";
import { postgres } from "../src/stores/postgres.ts";
import { redis } from "../src/stores/redis.ts";
import { shared } from "../src/stores/shared.ts";
import { sqlite } from "../src/stores/sqlite.ts";
import { workersKv } from "../src/stores/workers-kv.ts";
import { there } from "./realm.ts";

const any = (value?: unknown): never => value as never;
const bucket = { kind: "token bucket", rate: 10, period: MINUTE } as const;
const limits = defineLimits({ sendMessage: bucket, freeTrial: { ...bucket, kind: "fixed window" } });

/** The mistake, and its message. */
type Mistake = readonly [written: string, run: () => unknown, sentence: string];
const throwEach = (mistakes: readonly Mistake[]): void => {
  test.each(mistakes)("%s", (_, run, sentence) => {
    let thrown: unknown;
    try {
      run();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(InputError);
    expect((thrown as Error).message).toBe(sentence);
  });
};

test("lists the valid names", () => {
  expect(limits.names).toEqual(["sendMessage", "freeTrial"]);
  expectTypeOf(limits.names).toEqualTypeOf<readonly ("sendMessage" | "freeTrial")[]>();
});

describe("a name", () => {
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
  ]);
});

describe("a policy", () => {
  const made = (policy: object) => () => defineLimits({ chat: any(policy) });
  const IN = ' (in the limit "chat")';
  const BUCKET = "absent: a token bucket has kind, rate, period, capacity, maxReserved, shards, onStoreError, timeout";
  throwEach([
    [
      "with a field misspelt",
      made({ ...bucket, capcity: 20 }),
      `\`capcity\` must be ${BUCKET}; got 20; did you mean \`capacity\`?${IN}`,
    ],
    ["with another library's field", made({ ...bucket, points: 5 }), `\`points\` must be ${BUCKET}; got 5${IN}`],
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
      `\`period\` must be an integer of ms from 1 to 1099511627776, or a text such as "15m"; got "1 min"${IN}`,
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
      `\`start\` must be "first request", or an integer of ms from -4503599627370496 to 4503599627370496${typeof start === "string" ? ', or a text such as "15m"' : ""}; got ${typeof start === "string" ? `"${start}"` : start}${IN}`,
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
  ]);
});

describe("a call", () => {
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
    ["a number as the key", call({ key: 7 }), `${KEY}7`],
    ["an object as the key", call({ key: { id: 7 } }), `${KEY}an object`],
    ["an array as the key", call({ key: ["a", "b"] }), `${KEY}an object`],
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

describe("a client", () => {
  const REDIS =
    "`client` must be a Redis client: ioredis (`Redis` or `Cluster`), node-redis 5 or newer (a client, pool, cluster or " +
    "sentinel), Valkey GLIDE, `Bun.RedisClient`, or one with `eval(script, keys, args)` and `evalsha(sha, keys, args)`; got ";
  const POSTGRES = "`client` must be a PostgreSQL client, with query(text, values) or unsafe(text, values); got ";
  const KV = "`namespace` must be a binding to a KV namespace, such as env.QUOTAS; got ";
  const OBJECTS = "`namespace` must be a binding to a namespace of Durable Objects, such as env.LIMITS; got ";
  const DENO = "`kv` must be an open database, such as await Deno.openKv(); got ";
  const MEMCACHED =
    "`client` must be a Memcached client that can compare and swap: one that `memcached` or `memcache-client` makes; got ";
  const url = "redis://localhost";
  throwEach([
    ["ioredis: its class", () => redis(any(Redis)), `${REDIS}the class Redis; pass one that is made: new Redis(…)`],
    ["Redis: an address", () => redis(any(url)), `${REDIS}"${url}"`],
    ["Redis: settings", () => redis(any({ host: "a", port: 1 })), `${REDIS}an object with host, port`],
    ["Redis: a promise", () => redis(any(Promise.resolve())), `${REDIS}a promise; \`await\` it first`],
    ["Redis: nothing", () => redis(any()), `${REDIS}undefined`],
    [
      "PostgreSQL: pg's class",
      () => postgres(any(class Pool {})),
      `${POSTGRES}the class Pool; pass one that is made: new Pool(…)`,
    ],
    [
      "PostgreSQL: settings",
      () => postgres(any({ connectionString: "" })),
      `${POSTGRES}an object with connectionString`,
    ],
    ["PostgreSQL: the module", () => postgres(any({ Pool: pg.Pool })), `${POSTGRES}an object with Pool`],
    ["PostgreSQL: a promise", () => postgres(any(Promise.resolve())), `${POSTGRES}a promise; \`await\` it first`],
    ["Workers KV: no such binding", () => workersKv(any({}["QUOTAS" as never])), `${KV}undefined`],
    ["Workers KV: its name", () => workersKv(any("QUOTAS")), `${KV}"QUOTAS"`],
    ["Workers KV: all of env", () => workersKv(any({ QUOTAS: {} })), `${KV}an object with QUOTAS`],
    ["Durable Objects: all of env", () => durableObject(any({ LIMITS: {} })), `${OBJECTS}an object with LIMITS`],
    ["Deno KV: not awaited", () => denoKv(any(Promise.resolve())), `${DENO}a promise; \`await\` it first`],
    ["Memcached: an address", () => memcached(any("localhost:11211")), `${MEMCACHED}"localhost:11211"`],
    [
      "Memcached: its class",
      () => memcached(any(class Memcached {})),
      `${MEMCACHED}the class Memcached; pass one that is made: new Memcached(…)`,
    ],
    ["Memcached: memjs, which has no cas", () => memcached(any({ servers: [] })), `${MEMCACHED}an object with servers`],
    [
      "Memcached: copies that are none",
      () => memcached(any(new MemcacheClient({ server: { servers: [{ server: "a:1" }, { server: "b:1" }] } }))),
      "`client` must be one of a single server; got one that uses any of 2",
    ],
    [
      "Memcached: a prefix with a space",
      () => memcached(any(new MemcacheClient({ server: "a:1" })), { prefix: "my app" }),
      '`prefix` must be 1 to 64 characters of A-Z a-z 0-9 _ . -; got "my app"',
    ],
    [
      "DynamoDB: a client without methods",
      () => dynamodb(any({ send() {} })),
      "`client` must be a client with a method for each operation: new DynamoDB(…); got a client that has only `send`",
    ],
    [
      "MongoDB: a database",
      () => mongodb(any({ collection() {} })),
      "`client` must be a client of the driver mongodb: new MongoClient(url); got an object with collection",
    ],
    [
      "SQLite: Drizzle's database",
      () => sqlite(any({ query: {}, $client: {} })),
      "`client` must be a database of node:sqlite, better-sqlite3, bun:sqlite, @libsql/client or Cloudflare D1; " +
        "got a database of Drizzle; pass its `$client`",
    ],
    [
      "Convex: all of ctx",
      () => convex(any({ db: {} })),
      "`db` must be a database, such as a mutation's ctx.db; got an object with db",
    ],
    [
      "memory: null in place of options",
      () => memory(any(null)),
      "`options` must be an object with any of maxKeys, restore, or left out; got null",
    ],
    [
      "shared: null in place of options",
      () => shared(any(null)),
      "`options` must be an object with any of maxKeys, or left out; got null",
    ],
    [
      "shared: the size itself",
      () => shared(any(1000)),
      "`options` must be an object with any of maxKeys, or left out; got 1000",
    ],
    [
      "shared: a store's option that it does not have",
      () => shared(any({ maxkeys: 1000 })),
      "`maxkeys` must be absent: shared has maxKeys; got 1000; did you mean `maxKeys`?",
    ],
    [
      "file: null in place of a path",
      () => file(any(null)),
      "`path` must be the path of a folder, a string or a file: URL; got null",
    ],
    [
      "file: null in place of options",
      () => file("./state", any(null)),
      "`options` must be an object with any of maxKeys, sync, or left out; got null",
    ],
    [
      "file: options in an array",
      () => file("./state", any([])),
      "`options` must be an object with any of maxKeys, sync, or left out; got an object",
    ],
    [
      "in place of a store",
      () => defineLimits({ chat: bucket }, { store: any(new Redis({ lazyConnect: true })) }),
      "`store` must be a store, such as memory() or redis(client); got an object",
    ],
  ]);
});

describe("a middleware", () => {
  const LIMITER = "`limiter` must be what defineLimits returns; got ";
  const ITSELF = "a request; mount what rateLimit(limits, options) returns, not rateLimit itself";
  const [request, response] = [{ headers: {} }, { setHeader: () => {} }];
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
      "node:http: no listener",
      () => node(limits, { name: "sendMessage" }, any({})),
      "`listener` must be a function, after the options: rateLimit(limits, options, listener); got an object",
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

describe("a function that is not part of the limiter", () => {
  throwEach([
    [
      "clientIp: no request",
      () => clientIp(any(null)),
      "`request` must be a request, or an object with address and headers; got null",
    ],
    [
      "appendRateLimitHeaders: no response",
      () => appendRateLimitHeaders(any({}), limits.check("sendMessage")),
      "`target` must be a Headers, or a response of node:http, with getHeader and setHeader; got an object",
    ],
    [
      "metrics: no meter",
      () => metrics(any(null)),
      '`meter` must be a meter of @opentelemetry/api, such as metrics.getMeter("tidegate"); got null',
    ],
    [
      "policyKey: a symbol",
      () => policyKey(any(Symbol("a"))),
      "`parts[0]` must be a string, or undefined for a part that the request lacks; got a symbol",
    ],
    [
      "policyKey: a number, which has no length",
      () => policyKey("a", any(7)),
      "`parts[1]` must be a string, or undefined for a part that the request lacks; got 7",
    ],
    [
      "readRateLimit: a plain object of headers",
      () => readRateLimit(any({})),
      "`fields` must be a Headers, such as response.headers; got an object",
    ],
  ]);
});
