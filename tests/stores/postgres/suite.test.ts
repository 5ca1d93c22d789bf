import { PGlite } from "@electric-sql/pglite";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, test } from "vitest";
import { migrate, postgres } from "tidegate/postgres";
import { storeSuite } from "tidegate/testing";
import { PATIENT, withServer } from "./fixture.ts";
import { type Rows, stateOf } from "./stored.ts";
import { few, vectors } from "../vectors.ts";

const DAMAGE = "UPDATE tidegate.states SET value = 'NaN' WHERE id = convert_to($1, 'UTF8')";
const EMPTY = "DELETE FROM tidegate.states";

describe("PostgreSQL, with pg", () => {
  const fixture = withServer();
  let pool: Pool;
  beforeAll(() => {
    pool = fixture.pool();
  });
  storeSuite({
    test,
    describe,
    vectors,
    create: async () => {
      await pool.query(EMPTY);
      return postgres(pool, PATIENT);
    },
    stored: () => (identity) => stateOf(fixture.rows, identity),
    corrupt: () => (identity) => fixture.rows(DAMAGE, [identity]),
  });
});

describe("PGlite", () => {
  let client: PGlite;
  const rows: Rows = async (text, values) => (await client.query<Record<string, unknown>>(text, values)).rows;
  beforeAll(async () => {
    client = await PGlite.create();
    await migrate(client);
  });
  afterAll(() => client?.close());
  storeSuite({
    test,
    describe,
    vectors: few,
    create: async () => {
      await client.query(EMPTY);
      return postgres(client, PATIENT);
    },
    stored: () => (identity) => stateOf(rows, identity),
    corrupt: () => (identity) => rows(DAMAGE, [identity]),
  });
});
