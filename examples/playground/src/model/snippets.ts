/** The policy as code to copy, for each store. */
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
    before: ['const client = new Memcached("localhost:11211");'],
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
export function snippet(draft: Draft, name: StoreName, reserve: boolean): string {
  const { imports, before, store }: Store = STORES[name];
  const { unit } = periodOf(draft.period);
  const options = store === undefined ? "" : `, { store: ${store} }`;
  const wait = store === undefined ? "" : "await ";
  const call = reserve ? '{ key: "user 7", reserve: true }' : '{ key: "user 7" }';
  return [
    `import { defineLimits, ${unit} } from "tidegate";`,
    ...imports,
    "",
    ...before,
    ...(before.length > 0 ? [""] : []),
    "export const limits = defineLimits({",
    `  api: ${policy(draft)},`,
    `}${options});`,
    "",
    `const { ok, retryAfter } = ${wait}limits.limit("api", ${call});`,
    reserve
      ? `if (ok) console.log(\`granted: run it in \${retryAfter ?? 0} ms\`);`
      : `if (!ok) console.log(\`denied: again in \${retryAfter} ms\`);`,
    "",
  ].join("\n");
}
