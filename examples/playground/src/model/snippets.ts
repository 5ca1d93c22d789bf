/** The policy as code to copy, for each store and framework. */
import { type FrameworkName, usage } from "./frameworks.ts";
import type { Draft } from "./policy.ts";

const UNITS: Readonly<Record<number, string>> = { 1000: "SECOND", 60000: "MINUTE" };
const number = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, "_");

const periodOf = (ms: number): { text: string; unit: string } =>
  UNITS[ms] === undefined ? { text: `${ms / 1000} * SECOND`, unit: "SECOND" } : { text: UNITS[ms], unit: UNITS[ms] };

/** The policy as one would write it: defaults are left out. */
function policy({ kind, rate, period, capacity, maxReserved, shards }: Draft): string {
  const fields = [`kind: "${kind}"`, `rate: ${number(rate)}`, `period: ${periodOf(period).text}`];
  if (capacity !== rate) fields.push(`capacity: ${number(capacity)}`);
  if (maxReserved !== undefined) fields.push(`maxReserved: ${number(maxReserved)}`);
  if (shards !== 1) fields.push(`shards: ${shards}`);
  return `{ ${fields.join(", ")} }`;
}

interface Store {
  title: string;
  /** Lines of imports, after the first. */
  imports: string[];
  /** Lines before the limits, and what goes into `store`. */
  before: string[];
  store: string | undefined;
  note: string;
}

const STORES = {
  memory: {
    title: "Memory",
    imports: [],
    before: [],
    store: undefined,
    note: "This thread's memory; answers at once, without a promise.",
  },
  shared: {
    title: "Worker threads",
    imports: ['import { shared } from "tidegate/shared";'],
    before: [],
    store: "shared()",
    note: "One table for all threads of the process, in a native addon.",
  },
  file: {
    title: "File",
    imports: ['import { file } from "tidegate/file";'],
    before: [],
    store: 'file("./limits")',
    note: "A folder for all processes of a machine, in a native addon.",
  },
  sqlite: {
    title: "SQLite",
    imports: ['import { DatabaseSync } from "node:sqlite";', 'import { sqlite } from "tidegate/sqlite";'],
    before: [
      'const database = new DatabaseSync("limits.db");',
      'database.exec("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 100");',
    ],
    store: "sqlite(database)",
    note: "One read and one conditional write. better-sqlite3, Bun, libSQL and D1 too.",
  },
  redis: {
    title: "Redis",
    imports: ['import { redis } from "tidegate/redis";', 'import { Redis } from "ioredis";'],
    before: ['const client = new Redis("redis://localhost:6379");'],
    store: "redis(client)",
    note: "One script call; by the server's clock. Valkey, clusters and REST clients too.",
  },
  postgres: {
    title: "PostgreSQL",
    imports: ['import { migrate, postgres } from "tidegate/postgres";', 'import pg from "pg";'],
    before: ["const pool = new pg.Pool();", "await migrate(pool); // once, when you deploy"],
    store: "postgres(pool)",
    note: "One statement; by the server's clock. postgres.js and PGlite too.",
  },
  mysql: {
    title: "MySQL",
    imports: ['import { createPool } from "mysql2/promise";', 'import { mysql } from "tidegate/mysql";'],
    before: ['const pool = createPool("mysql://root@localhost/test");'],
    store: "mysql(pool)",
    note: "One read and one conditional write. MariaDB too.",
  },
  dynamodb: {
    title: "DynamoDB",
    imports: ['import { DynamoDB } from "@aws-sdk/client-dynamodb";', 'import { dynamodb } from "tidegate/dynamodb";'],
    before: ["const client = new DynamoDB();"],
    store: 'dynamodb(client, { table: "tidegate" })',
    note: "One read and one conditional write, again on a conflict.",
  },
  mongodb: {
    title: "MongoDB",
    imports: ['import { MongoClient } from "mongodb";', 'import { mongodb } from "tidegate/mongodb";'],
    before: ['const client = new MongoClient("mongodb://localhost:27017");'],
    store: "mongodb(client)",
    note: "One read and one conditional write, again on a conflict.",
  },
  "durable object": {
    title: "Durable Object",
    imports: ['import { durableObject, type ObjectNamespace } from "tidegate/durable-object";'],
    before: [
      'export { TidegateObject } from "tidegate/durable-object";',
      "declare const env: { LIMITS: ObjectNamespace }; // from your handler's arguments",
    ],
    store: "durableObject(env.LIMITS)",
    note: "One call to the object; durable, near the first caller.",
  },
  "workers kv": {
    title: "Workers KV",
    imports: ['import { type KvNamespaceLike, workersKv } from "tidegate/workers-kv";'],
    before: ["declare const env: { LIMITS: KvNamespaceLike }; // from your handler's arguments"],
    store: "workersKv(env.LIMITS)",
    note: "Not exact: each location sees writes late. For exact limits use a Durable Object.",
  },
  "deno kv": {
    title: "Deno KV",
    imports: ['import { denoKv } from "tidegate/deno-kv";'],
    before: [],
    store: "denoKv(await Deno.openKv())",
    note: "One read and one atomic step, again on a conflict.",
  },
  memcached: {
    title: "Memcached",
    imports: ['import Memcached from "memcached";', 'import { memcached } from "tidegate/memcached";'],
    before: ['const client = new Memcached("localhost:11211", { retry: 1000, failures: 1e6 });'],
    store: "memcached(client)",
    note: "One look and one swap, again on a conflict. What it evicts is full again.",
  },
  "web storage": {
    title: "Browser",
    imports: ['import { webStorage } from "tidegate/web-storage";'],
    before: [],
    store: "webStorage()",
    note: "IndexedDB, for all tabs of an origin.",
  },
  convex: {
    title: "Convex",
    imports: ['import { convex, type ConvexDatabase } from "tidegate/convex";'],
    before: ["declare const ctx: { db: ConvexDatabase }; // from your mutation's arguments"],
    store: "convex(ctx.db)",
    note: "Inside your mutation: taken or rolled back with everything else in it.",
  },
} as const satisfies Record<string, Store>;

export type StoreName = keyof typeof STORES;
export const STORE_NAMES = Object.keys(STORES) as StoreName[];
export const titleOf = (name: StoreName): string => STORES[name].title;
export const noteOf = (name: StoreName): string => STORES[name].note;

/** A complete module: it runs unchanged where its store is available. */
export function snippet(draft: Draft, name: StoreName, reserve: boolean, framework: FrameworkName = "call"): string {
  const { imports, before, store }: Store = STORES[name];
  const use = usage(framework, reserve, store !== undefined);
  const { unit } = periodOf(draft.period);
  const options = store === undefined ? "" : `, { store: ${store} }`;
  return [
    `import { defineLimits, ${unit} } from "tidegate";`,
    ...use.imports,
    ...imports,
    "",
    ...before,
    ...(before.length > 0 ? [""] : []),
    "export const limits = defineLimits({",
    `  api: ${policy(draft)},`,
    `}${options});`,
    "",
    ...use.lines,
    "",
  ].join("\n");
}
