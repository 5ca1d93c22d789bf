/** A first call on a client that has yet to connect: the time that takes does not count as the call's. */
import { Client, Pool } from "pg";
import postgresJs from "postgres";
import { describe, expect, test } from "vitest";
import { postgres, type PostgresClient } from "tidegate/postgres";
import { connectingSuite } from "../connecting.ts";
import { PATIENT, withServer } from "./fixture.ts";

const fixture = withServer();

type Open = (port: number) => PostgresClient & { end(): Promise<unknown> };
const clients: Readonly<Record<string, Open>> = {
  "pg's Pool": (port) => {
    const pool = new Pool({ ...fixture.server.options, port });
    pool.on("error", () => {}); // a test ends its connections
    return pool;
  },
  "pg's Client, not connected yet": (port) => {
    const client = new Client({ ...fixture.server.options, port });
    client.on("error", () => {});
    client.connect().catch(() => {});
    return client;
  },
  "postgres.js": (port) => postgresJs({ ...fixture.server.options, port }),
};

describe.each(Object.entries(clients))("%s", (_, open) => {
  connectingSuite(
    () => fixture.server.port,
    (port) => {
      const client = open(port);
      return { store: postgres(client), close: () => client.end() };
    },
  );
});

test("a store within a transaction has a connection", () => {
  const store = postgres(fixture.pool(), PATIENT);
  expect(store.within(fixture.admin).connecting).toBeUndefined();
});
