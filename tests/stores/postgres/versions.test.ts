/** Making the schema, on the command line and by the store, and upgrades between its versions. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { migrate, migration, postgres } from "tidegate/postgres";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { PATIENT, stock, take, withServer } from "./fixture.ts";

const fixture = withServer();
const run = promisify(execFile);
const folder = temporaryFolder("versions");
afterAll(() => remove(folder));
const require = createRequire(import.meta.url);
const built = dirname(require.resolve("tidegate/package.json"));
const limit = stock("versions", 10);

/** A database of its own, without the schema. */
async function fresh(name: string): Promise<string> {
  await fixture.rows(`CREATE DATABASE ${name}`);
  const { user, host, port } = fixture.server.options;
  return `postgres://${user}@${host}:${port}/${name}`;
}
/** Runs `tidegate` in a project that has these packages installed. */
async function tidegate(packages: readonly string[], ...args: string[]) {
  const project = join(folder, packages.join("-") || "none");
  mkdirSync(join(project, "node_modules"), { recursive: true });
  for (const name of packages) {
    const at = join(project, "node_modules", name);
    const from = fileURLToPath(new URL(`../../../node_modules/${name}`, import.meta.url));
    try {
      symlinkSync(from, at);
    } catch {
      // A test before has linked it.
    }
  }
  return run(process.execPath, [join(built, "dist/cli/bin.js"), ...args], { cwd: project }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

test.each([["pg"], ["postgres"]])("tidegate migrate makes the schema with the project's %s, twice", async (name) => {
  const url = await fresh(`cli_${name}`);
  for (let turn = 0; turn < 2; turn++) {
    expect(await tidegate([name], "migrate", "--store", url)).toMatchObject({
      code: 0,
      stdout: "the schema tidegate has version 1\n",
      stderr: "",
    });
  }
  const store = postgres(fixture.pool({ database: `cli_${name}` }), PATIENT);
  expect((await store.decide(take(limit, "k"))).ok).toBe(true);
});

test("tidegate migrate without a client installed: exit code 2, and what to install", async () => {
  const { code, stderr } = await tidegate([], "migrate", "--store", "postgres://localhost/none");
  expect(code).toBe(2);
  expect(stderr).toMatch(/^tidegate: neither pg nor postgres is installed in .*: run npm install pg, or print the SQL/);
});

test("the file of the package, and what --print prints, are the migration", async () => {
  expect(readFileSync(require.resolve("tidegate/postgres.sql"), "utf8")).toBe(migration());
  expect((await tidegate([], "migrate", "--print")).stdout).toBe(migration());
});

test("the migration may follow a comment without a line feed, as where it is appended to the file of drizzle-kit", async () => {
  await fresh("appended");
  const pool = fixture.pool({ database: "appended" });
  await pool.query(`-- Custom SQL migration file, put your code below! --${migration()}`);
  expect((await postgres(pool, PATIENT).decide(take(limit, "k"))).ok).toBe(true);
});

test("store.migrate() makes the schema that the store is on, and may be called again", async () => {
  await fresh("by_store");
  const store = postgres(fixture.pool({ database: "by_store" }), { ...PATIENT, schema: "limits" });
  await Promise.all([store.migrate(), store.migrate(), store.migrate()]);
  expect((await store.decide(take(limit, "k", 4))).ok).toBe(true);
  await store.migrate();
  expect((await store.getValue(limit, "k")).value).toBeCloseTo(6, 6);
});

test("a schema that is missing: the error names both ways to make it", async () => {
  await fresh("missing");
  const store = postgres(fixture.pool({ database: "missing" }), PATIENT);
  const names = {
    message: expect.stringMatching(/"tidegate" is missing or older.*npx tidegate migrate.*store\.migrate\(\)/),
  };
  await expect(store.decide(take(limit, "k"))).rejects.toMatchObject(names);
  await expect(store.getValue(limit, "k")).rejects.toMatchObject(names);
  await store.migrate();
  expect((await store.decide(take(limit, "k"))).ok).toBe(true);
});

test("an upgrade keeps states, and waits for no reader of the table, such as pg_dump: calls would wait behind it", async () => {
  await fresh("read");
  const pool = fixture.pool({ database: "read", options: "-c lock_timeout=1000" });
  await pool.query(migration().replace("SELECT 1", "SELECT 0"));
  const store = postgres(pool, PATIENT);
  await store.decide(take(limit, "k", 4));
  const reader = await pool.connect();
  await reader.query("BEGIN; SELECT FROM tidegate.states");
  await migrate(pool).finally(() => reader.release(true));
  expect((await pool.query("SELECT tidegate.version()")).rows).toEqual([{ version: 1 }]);
  expect((await store.getValue(limit, "k")).value).toBeCloseTo(6, 6);
});

test("a schema that is newer than the package is not changed: the error's remedy is to update the package", async () => {
  await fresh("newer");
  const pool = fixture.pool({ database: "newer" });
  await migrate(pool);
  await pool.query("CREATE OR REPLACE FUNCTION tidegate.version() RETURNS int LANGUAGE sql AS 'SELECT 2'");
  await expect(migrate(pool)).rejects.toThrow("the schema has version 2, and this package has 1: update the package");
});
