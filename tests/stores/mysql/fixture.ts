/** A server for a file of tests, with a connection of the test's own. */
import { createPool, type Pool, type PoolOptions } from "mysql2/promise";
import { afterAll, beforeAll } from "vitest";
import { FAST, Server } from "./server.ts";

export interface Fixture {
  readonly server: Server;
  /** Of one connection, which is made anew where a test has ended it with the server. */
  readonly admin: Pool;
  pool(options?: PoolOptions): Pool;
  /** The rows of a query, each as an array. */
  rows(sql: string): Promise<unknown[][]>;
}

export function withServer(...options: string[]): Fixture {
  let server: Server;
  let admin: Pool;
  const pools: Pool[] = [];
  beforeAll(async () => {
    server = await Server.start(...FAST, ...options);
    admin = createPool({ ...server.options, connectionLimit: 1 });
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await admin?.end();
    await server?.close();
  });
  return {
    get server() {
      return server;
    },
    get admin() {
      return admin;
    },
    pool(given = {}) {
      const pool = createPool({ ...server.options, ...given });
      pools.push(pool);
      return pool;
    },
    async rows(sql) {
      const [rows] = await admin.query({ sql, rowsAsArray: true });
      return rows as unknown as unknown[][];
    },
  };
}
