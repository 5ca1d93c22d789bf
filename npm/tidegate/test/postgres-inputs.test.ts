import { describe, expect, test } from "vitest";
import { defineLimits } from "../src/index.ts";
import { migrate, migration, postgres } from "../src/stores/postgres.ts";

// biome-ignore lint/suspicious/noExplicitAny: these are what untyped callers pass
const any = (value: unknown): any => value;
const client = { query: () => Promise.reject(new Error("nothing may be sent")) };
const store = postgres(client);
const sequelize = { query: client.query, getQueryInterface: () => {} };
const kysely = { executeQuery: client.query };
const knex = Object.assign(() => {}, { raw: client.query });
// As Drizzle 0.33 and older, whose `execute` takes what `sql` makes.
const oldDrizzle = { dialect: {}, execute: (query: { getSQL(): unknown }) => query.getSQL() };
const anyOf = (fields: string) => `\`options\` must be an object with any of ${fields}; got `;
const migrating = anyOf("schema, unlogged");
const storing = anyOf("schema, statements, batch, statementTimeout, prepare, lease");
const aClient = "`client` must be a PostgreSQL client, with query(text, values) or unsafe(text, values); got ";

test("a transaction may be on a connection that was reserved, as by Bun's SQL, which begins others", () => {
  const reserved = { unsafe: async () => [], begin: async () => undefined, release: () => {} };
  expect(() => store.within(any(reserved))).not.toThrow();
  const { release: _, ...pool } = reserved;
  expect(() => store.within(any(pool))).toThrow("`client` must be the client that the transaction is on");
});

describe("a wrong argument is an InputError that names it", () => {
  test.each<[string, () => unknown, string]>([
    ["migration(null)", () => migration(any(null)), `${migrating}null`],
    ['migration("tidegate")', () => migration(any("tidegate")), `${migrating}"tidegate"`],
    ["migrate(null)", () => migrate(any(null)), `${aClient}null`],
    ["migrate(client, null)", () => migrate(client, any(null)), `${migrating}null`],
    ["postgres()", () => any(postgres)(), `${aClient}undefined`],
    ["postgres(client, null)", () => postgres(client, any(null)), `${storing}null`],
    ["postgres(client, [])", () => postgres(client, any([])), `${storing}an array`],
    ["within(null)", () => store.within(any(null)), `${aClient}null`],
    ["within(function)", () => store.within(any(() => {})), `${aClient}a class or function; pass what it makes`],
    [
      "postgres(sequelize)",
      () => postgres(any(sequelize)),
      'Sequelize; pass { query: (text, bind) => sequelize.query(text, { bind, type: "SELECT", useMaster: true, transaction: null }) }',
    ],
    ["migrate(sequelize)", () => migrate(any(sequelize)), `${aClient}Sequelize; pass { query: (text, bind) =>`],
    ["postgres(kysely)", () => postgres(any(kysely)), `${aClient}Kysely; pass { query: (text, values = []) =>`],
    ["within(kysely's tx)", () => store.within(any(kysely)), `${aClient}Kysely; pass { query:`],
    ["postgres(knex)", () => postgres(any(knex)), `${aClient}Knex; pass pg's Pool, or`],
    ["migrate(drizzle 0.33)", () => migrate(any(oldDrizzle)), "`client` must be Drizzle 0.34 or newer"],
    [
      "migrate(a client of MySQL)",
      () => migrate(any({ ...client, escapeId: () => "" })),
      `${aClient}a client of MySQL`,
    ],
    ["postgres(drizzle 0.33)", () => postgres(any(oldDrizzle)), "`client` must be Drizzle 0.34 or newer"],
    ["within(drizzle 0.33)", () => store.within(any(oldDrizzle)), "`client` must be Drizzle 0.34 or newer"],
    ["purge(null)", () => store.purge(any(null)), `${anyOf("slice, now")}null`],
    ["purge({ slice: 0 })", () => store.purge({ slice: 0 }), "`slice` must be an integer from 1 to"],
    ["purge({ now: NaN })", () => store.purge({ now: Number.NaN }), "`now` must be"],
    ['purge({ now: "" })', () => store.purge({ now: any("") }), "`now` must be"],
    [
      "store.migrate({ unlogged: 1 })",
      () => store.migrate({ unlogged: any(1) }),
      "`unlogged` must be true or false; got 1",
    ],
  ])("%s", async (_, run, message) => {
    const error = await Promise.resolve()
      .then(run)
      .then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
    expect(error).toMatchObject({ code: "TIDEGATE_INPUT", message: expect.stringContaining(message) });
  });

  test.each([
    ["a lone surrogate", "\ud800"],
    ["a zero character", "a\0"],
    ["64 bytes", "é".repeat(32)],
  ])("a schema with %s", (_, schema) => {
    expect(() => migration({ schema })).toThrow("`schema` must be");
  });
});

test("of an error with a `cause`, the deprecated `original` is not read: Sequelize 7 prints a warning", async () => {
  const cause = Object.assign(new Error("could not serialize"), { code: "40001" });
  let reads = 0;
  const thrown = Object.defineProperty(Object.assign(new Error("wrapped", { cause }), { sql: "SELECT" }), "original", {
    get() {
      reads++;
      return cause;
    },
  });
  const client = { query: () => Promise.reject(thrown) };
  const limits = defineLimits(
    { api: { kind: "token bucket", rate: 1, period: 1 } },
    { store: postgres(client).within(client) },
  );
  await expect(limits.limit("api")).rejects.toMatchObject({ cause });
  expect(reads).toBe(0);
});
