/** Messages for a mistake in what a store is given: a client that is none, or its options. */
import { inspect } from "node:util";
import { Redis } from "ioredis";
import { MemcacheClient } from "memcache-client";
import mysql2 from "mysql2/promise";
import { MongoClient } from "mongodb";
import pg from "pg";
import { createClient } from "redis";
import { describe, expect, test } from "vitest";
import { defineLimits, MINUTE } from "../src/index.ts";
import { convex, stateTable } from "../src/stores/convex.ts";
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
import { any, throwEach } from "./throw-each.ts";

const thrower = (message: string) => () => {
  throw new Error(message);
};
const bucket = { kind: "token bucket", rate: 10, period: MINUTE } as const;

describe("a wrong client of a store throws", () => {
  const REDIS =
    "`client` must be a Redis client: ioredis (`Redis` or `Cluster`), node-redis (a client of 4 or newer; of 5, also a pool, cluster " +
    "or sentinel), Valkey GLIDE, `Bun.RedisClient`, or one with `eval(script, keys, args)` and `evalsha(sha, keys, args)`; got ";
  const POSTGRES = "`client` must be a PostgreSQL client, with query(text, values) or unsafe(text, values); got ";
  const dataSource = { options: { type: "mysql" }, createQueryRunner() {} };
  const ON_MYSQL = `${POSTGRES}one on "mysql"; pass that database's own client to its own store`;
  const SQLITE =
    "`client` must be a database of node:sqlite, better-sqlite3, bun:sqlite, @libsql/client, Turso or Cloudflare D1; got ";
  const IN_TRANSACTION =
    "`client` must be the client that the transaction is on, such as `tx` of `sql.begin(async (tx) => …)`; " +
    "got the one that makes transactions";
  const MYSQL = "a client of MySQL; pass it to `mysql` of tidegate/mysql";
  const KV = "`namespace` must be a binding to a KV namespace, such as env.QUOTAS; got ";
  const OBJECTS = "`namespace` must be a binding of Durable Objects, such as env.LIMITS; got ";
  const DENO = "`kv` must be an open database, such as await Deno.openKv(); got ";
  const MEMCACHED =
    "`client` must be a Memcached client that can compare and swap: one that `memcached` or `memcache-client` makes; got ";
  const mongo = new MongoClient("mongodb://localhost");
  const MONGODB = "`client` must be a client of the driver mongodb: new MongoClient(url); got ";
  const OF_CLIENT = "a part of one; pass the client, and the names as `database` and `collection`";
  const MONGOOSE = "a part of Mongoose; pass mongoose.connection.getClient()";
  // Also its connection has `execute` and `transactional`.
  const entities = { execute() {}, begin() {}, transactional() {}, getUnitOfWork() {} };
  const MIKRO_ORM =
    "MikroORM's EntityManager; pass { query } on the Kysely of its fork, or of the transaction, as in the guide on PostgreSQL";
  throwEach([
    ["ioredis: its class", () => redis(any(Redis)), `${REDIS}a class or function; pass what it makes`],
    ["node-redis: its createClient", () => redis(any(createClient)), `${REDIS}a class or function; pass what it makes`],
    ["Redis: an address", () => redis(any("redis://localhost")), `${REDIS}"redis://…"`],
    ["Redis: settings", () => redis(any({ host: "a", port: 1 })), `${REDIS}an object with host, port`],
    ["Redis: a promise", () => redis(any(Promise.resolve())), `${REDIS}a promise; \`await\` it first`],
    ["Redis: nothing", () => redis(any()), `${REDIS}undefined`],
    [
      "PostgreSQL: pg's class",
      () => postgres(any(class Pool {})),
      `${POSTGRES}a class or function; pass what it makes`,
    ],
    [
      "PostgreSQL: settings",
      () => postgres(any({ connectionString: "" })),
      `${POSTGRES}an object with connectionString`,
    ],
    ["PostgreSQL: the module", () => postgres(any({ Pool: pg.Pool })), `${POSTGRES}an object with Pool`],
    ["PostgreSQL: a promise", () => postgres(any(Promise.resolve())), `${POSTGRES}a promise; \`await\` it first`],
    ["PostgreSQL: a pool of mysql2", () => postgres(any(mysql2.createPool({}))), POSTGRES + MYSQL],
    [
      "PostgreSQL: Drizzle on mysql2",
      () => postgres(any({ execute() {}, dialect: {}, $client: mysql2.createPool({}) })),
      POSTGRES + MYSQL,
    ],
    ["PostgreSQL: TypeORM on MySQL", () => postgres(any({ query() {}, ...dataSource })), ON_MYSQL],
    ["PostgreSQL: its manager", () => postgres(any({ query() {}, dataSource })), ON_MYSQL],
    ["PostgreSQL: its manager before 1.0", () => postgres(any({ query() {}, connection: dataSource })), ON_MYSQL],
    [
      "PostgreSQL: Prisma on MySQL",
      () => postgres(any({ $queryRawUnsafe() {}, $executeRawUnsafe() {}, _activeProvider: "mysql" })),
      ON_MYSQL,
    ],
    [
      "PostgreSQL: a pool of slonik",
      () => postgres(any({ query() {}, maybeOneFirst() {} })),
      `${POSTGRES}slonik, whose \`query\` takes no text; pass pg's Pool`,
    ],
    [
      "PostgreSQL: pg-promise's database in place of a transaction",
      () => postgres(any({ query() {} })).within(any({ query() {}, $pool: {} })),
      IN_TRANSACTION,
    ],
    [
      "PostgreSQL: TypeORM's manager outside a transaction",
      () => postgres(any({ query() {} })).within(any({ query() {}, getTreeRepository() {} })),
      IN_TRANSACTION,
    ],
    ["PostgreSQL: MikroORM's EntityManager", () => postgres(any(entities)), POSTGRES + MIKRO_ORM],
    [
      "PostgreSQL: that of a transaction",
      () => postgres(any({ query() {} })).within(any(entities)),
      POSTGRES + MIKRO_ORM,
    ],
    ["Workers KV: its name", () => workersKv(any("QUOTAS")), `${KV}"QUOTAS"`],
    ["Workers KV: all of env", () => workersKv(any({ QUOTAS: {} })), `${KV}an object with QUOTAS`],
    ["Durable Objects: all of env", () => durableObject(any({ LIMITS: {} })), `${OBJECTS}an object with LIMITS`],
    ["Deno KV: not awaited", () => denoKv(any(Promise.resolve())), `${DENO}a promise; \`await\` it first`],
    ["Memcached: an address", () => memcached(any("localhost:11211")), `${MEMCACHED}"localhost:11211"`],
    [
      "Memcached: its class",
      () => memcached(any(class Memcached {})),
      `${MEMCACHED}a class or function; pass what it makes`,
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
      "DynamoDB: a client of AWS SDK 2, whose methods call back",
      () =>
        dynamodb(
          any({
            getItem() {},
            putItem() {},
            deleteItem() {},
            transactGetItems() {},
            transactWriteItems() {},
            makeRequest() {},
          }),
        ),
      "`client` must be of AWS SDK 3: new DynamoDB(…) of @aws-sdk/client-dynamodb; got one of AWS SDK 2",
    ],
    ["MongoDB: a database", () => mongodb(any(mongo.db())), MONGODB + OF_CLIENT],
    ["MongoDB: a collection", () => mongodb(any(mongo.db().collection("a"))), MONGODB + OF_CLIENT],
    ["MongoDB: Mongoose", () => mongodb(any({ model() {}, startSession() {} })), MONGODB + MONGOOSE],
    ["MongoDB: its connection", () => mongodb(any({ getClient() {}, startSession() {}, db: {} })), MONGODB + MONGOOSE],
    [
      "SQLite: a binding to D1 that is not configured",
      () => sqlite(any()),
      `${SQLITE}undefined; if it is a binding to D1, add it to \`d1_databases\` in wrangler.jsonc`,
    ],
    [
      "SQLite: the class of better-sqlite3",
      () => sqlite(any(function Database() {})),
      `${SQLITE}a class or function; pass what it makes`,
    ],
    [
      "SQLite: Drizzle's database",
      () => sqlite(any({ query: {}, $client: {} })),
      `${SQLITE}a database of Drizzle; pass its \`$client\``,
    ],
    [
      "SQLite: Drizzle's database that has `execute`, as on PostgreSQL",
      () => sqlite(any({ execute() {}, $client: {} })),
      `${SQLITE}a database of Drizzle; pass its \`$client\``,
    ],
    [
      "SQLite: MikroORM's EntityManager",
      () => sqlite(any(entities)),
      `${SQLITE}MikroORM; pass a database of its driver`,
    ],
    ["SQLite: a pool of mysql2", () => sqlite(any(mysql2.createPool({}))), SQLITE + MYSQL],
    [
      "SQLite: a database of sqlite3 or sql.js",
      () => sqlite(any({ prepare() {}, run() {}, each() {} })),
      `${SQLITE}an object with prepare, run, each`,
    ],
    [
      "SQLite: a database of libsql/promise, whose statements are promises",
      () => sqlite(any({ prepare: () => Promise.reject(new Error("handled")), exec() {} })),
      `${SQLITE}an object with prepare, exec`,
    ],
    [
      "SQLite: a database of node-sqlite3-wasm, whose statements drop all values but the first",
      () => sqlite(any({ prepare: () => ({ all: (a: string) => [{ a, b: null }] }), all() {}, run() {} })),
      `${SQLITE}an object with prepare, all, run`,
    ],
    [
      "SQLite: a database whose statements are promises, with a `batch` as D1 has it",
      () => sqlite(any({ prepare: () => Promise.reject(new Error("handled")), batch() {} })),
      `${SQLITE}an object with prepare, batch`,
    ],
    [
      "SQLite: 3.37, as better-sqlite3 7.4 has it",
      () => sqlite(any({ prepare: thrower('near ">>": syntax error') })),
      '`client` must be on SQLite 3.38 or newer; got an older one (near ">>": syntax error)',
    ],
    [
      "Convex: all of ctx",
      () => convex(any({ db: {} })),
      "`db` must be a database, such as a mutation's ctx.db; got an object with db",
    ],
    [
      "Convex: a schema's table without v",
      () =>
        stateTable(
          any(() => {}),
          any(),
        ),
      "`v` must be v of convex/values; got undefined",
    ],
    [
      "Convex: v before defineTable",
      () =>
        stateTable(
          any({ string() {} }),
          any(() => {}),
        ),
      "`defineTable` must be the function defineTable of convex/server; got an object with string",
    ],
    [
      "memory: null in place of options",
      () => memory(any(null)),
      "`options` must be an object with any of maxKeys, restore; got null",
    ],
    [
      "shared: null in place of options",
      () => shared(any(null)),
      "`options` must be an object with any of maxKeys; got null",
    ],
    ["shared: the size itself", () => shared(any(1000)), "`options` must be an object with any of maxKeys; got 1000"],
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
      "`options` must be an object with any of maxKeys, sync; got null",
    ],
    [
      "file: options in an array",
      () => file("./state", any([])),
      "`options` must be an object with any of maxKeys, sync; got an array",
    ],
    [
      "in place of a store",
      () => defineLimits({ chat: bucket }, { store: any(new Redis({ lazyConnect: true })) }),
      "`store` must be a store, such as memory() or redis(client); got an object",
    ],
  ]);
});

test.each<[string, () => unknown]>([
  ["an address", () => redis(any("redis://:hunter2@localhost"))],
  ["an address of MongoDB Atlas", () => mongodb(any("mongodb+srv://me:hunter2@cluster0.example.net"))],
  ["an address of JDBC", () => postgres(any("jdbc:postgresql://db/app?password=hunter2"))],
  ["a connection string of Azure", () => redis(any("cache.example.net:6380,password=hunter2,ssl=True"))],
  ["a connection string of libpq", () => postgres(any("host=db user=me password=hunter2"))],
  ["an address without its scheme", () => redis(any("me:hunter2@localhost:6379"))],
  ["an address of libSQL", () => sqlite(any("libsql://localhost?authToken=hunter2"))],
  ["an address as the store", () => defineLimits({}, { store: any("postgres://me:hunter2@localhost") })],
  ["settings", () => postgres(any({ host: "localhost", password: "hunter2" }))],
])("%s in place of a client leaves no password in what Node.js prints of the error", (_, make) => {
  let thrown: unknown;
  try {
    make();
  } catch (error) {
    thrown = error;
  }
  expect(inspect(thrown)).toMatch(/`(client|database|store)` must be/);
  expect(inspect(thrown)).not.toContain("hunter2");
  expect(thrown).toHaveProperty("value");
});
