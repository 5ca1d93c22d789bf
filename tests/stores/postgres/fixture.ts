/** A server with the migration, for a file of tests. */
import { Client, Pool, type PoolConfig } from "pg";
import { afterAll, beforeAll } from "vitest";
import type { Config } from "tidegate";
import { type Call, type Decision, Limit } from "tidegate/store";
import { migrate, postgres, type PostgresOptions, type PostgresStore } from "tidegate/postgres";
import { ODD_KEYS } from "../../../npm/tidegate/src/testing/keys.ts";
import { type Server, startServer } from "./server.ts";
import type { Rows } from "./stored.ts";

/** Statements of calls whose answer a test needs: no slow machine takes as long. */
export const PATIENT = { statementTimeout: 60_000 } as const;

export interface Fixture {
  readonly server: Server;
  /** A connection of the test's own, to look at what is stored. */
  readonly admin: Client;
  readonly rows: Rows;
  pool(config?: PoolConfig): Pool;
  /** A store whose statements are {@link PATIENT}, unless `options` has a timeout for them. */
  store(options?: PostgresOptions, config?: PoolConfig): PostgresStore;
}

/** Starts a server before the file's tests and ends it, and every pool, after them. */
export function withServer(settings: Readonly<Record<string, string | number>> = { fsync: "off" }): Fixture {
  let server: Server;
  let admin: Client;
  const pools: Pool[] = [];
  const fixture: Fixture = {
    get server() {
      return server;
    },
    get admin() {
      return admin;
    },
    rows: async (text, values) => (await admin.query(text, values)).rows,
    pool(config = {}) {
      const pool = new Pool({ ...server.options, ...config });
      pool.on("error", () => {}); // a test may end the server under an idle connection
      pools.push(pool);
      return pool;
    },
    store: (options, config) => postgres(fixture.pool(config), { ...PATIENT, ...options }),
  };
  beforeAll(async () => {
    server = await startServer(settings);
    admin = new Client(server.options);
    admin.on("error", () => {});
    await admin.connect();
    await migrate(admin);
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await admin?.end().catch(() => {});
    await server?.close();
  });
  return fixture;
}

/** A take of `count` tokens on a limit and key. */
export const take = (limit: Limit, key: string | undefined, count = 1, rest: Partial<Call> = {}): Call => ({
  op: "take",
  limit,
  key,
  count,
  reserve: false,
  ...rest,
});

/** A bucket that in effect never refills: what is granted is what it began with. */
export const stock = (name: string, capacity: number, rest: Partial<Config> = {}): Limit =>
  new Limit(name, { kind: "token bucket", rate: 1e-9, period: 2 ** 40, capacity, ...rest } as Config);

/** Keys that a client could take for something else in the text of a statement, or in that of an array. */
export const STRANGE = [
  ...ODD_KEYS.filter((key) => key !== undefined),
  "",
  "{a,b}",
  "NULL",
  "\\x61",
  "\\'",
  "$1::text",
];

/** How many were granted. */
export const granted = (decisions: readonly Decision[]): number => decisions.filter(({ ok }) => ok).length;
