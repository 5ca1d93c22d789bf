/** A role that only decides, with the GRANTs of the guide: no default privileges help it. */
import { readFileSync } from "node:fs";
import { Client } from "pg";
import { expect, test, vi } from "vitest";
import { stock, take, withServer } from "./fixture.ts";

const fixture = withServer();

test("a role with the GRANTs of the guide calls everything that decides, and may not change the schema", async () => {
  await fixture.rows("REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA tidegate FROM PUBLIC");
  await fixture.rows(readFileSync(new URL("roles.sql", import.meta.url), "utf8"));
  const store = fixture.store({}, { user: "app" });
  const limit = stock("role", 10);
  expect((await store.decide(take(limit, "k"))).ok).toBe(true);
  expect((await Promise.all(["a", "b", "k"].map((key) => store.decide(take(limit, key))))).every(({ ok }) => ok)).toBe(
    true,
  );
  expect((await store.decideAll([take(limit, "k"), take(limit, "l")])).ok).toBe(true);
  expect((await store.decide(take(limit, "k", 1, { op: "give" }))).ok).toBe(true);
  expect((await store.getValue(limit, "k")).value).toBeCloseTo(8, 6);
  await store.reset(limit, "k");
  await store.purge();
  const client = new Client({ ...fixture.server.options, user: "app" });
  await client.connect();
  expect((await client.query("SELECT ok FROM tidegate.decide('take', 'role', 'sql', 5, 1000)")).rows).toEqual([
    { ok: true },
  ]);
  await client.query("CALL tidegate.sweep()");
  // Where the schema has this version, there is nothing to do, and no right is needed.
  await store.migrate();
  await expect(client.query("DROP TABLE tidegate.states")).rejects.toMatchObject({ code: "42501" });
  await expect(client.query("CREATE TABLE tidegate.other ()")).rejects.toMatchObject({ code: "42501" });
  await client.end();
});

test("a role without the GRANTs: the error names what it may not do", async () => {
  await fixture.rows("CREATE ROLE nothing LOGIN");
  const store = fixture.store({}, { user: "nothing" });
  await expect(store.decide(take(stock("role", 10), "k"))).rejects.toMatchObject({
    code: "TIDEGATE_STORE",
    message: expect.stringContaining("permission denied for schema tidegate"),
    cause: { code: "42501" },
  });
});

test("a role that may not delete: one warning that the table grows, and calls go on", async () => {
  await fixture.rows(`CREATE ROLE keeper LOGIN; GRANT USAGE ON SCHEMA tidegate TO keeper;
    GRANT EXECUTE ON ALL ROUTINES IN SCHEMA tidegate TO keeper;
    GRANT SELECT, INSERT, UPDATE ON tidegate.states TO keeper`);
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  // Each call that makes a row cleans up.
  vi.spyOn(Math, "random").mockReturnValue(0);
  const store = fixture.store({}, { user: "keeper" });
  const limit = stock("role", 10);
  for (let i = 0; i < 20; i++) expect((await store.decide(take(limit, `kept${i}`))).ok).toBe(true);
  await vi.waitUntil(() => warn.mock.calls.length > 0, 10_000);
  for (let i = 20; i < 40; i++) expect((await store.decide(take(limit, `kept${i}`))).ok).toBe(true);
  const message =
    "tidegate: full rows are not deleted, so the table grows: permission denied for table states; the role needs";
  expect(warn.mock.calls).toEqual([[expect.stringContaining(message)]]);
  vi.restoreAllMocks();
});

test("a table with row-level security: the error names it, where rows cannot be written and where they are hidden", async () => {
  await fixture.rows(`CREATE ROLE tenant LOGIN; GRANT USAGE ON SCHEMA tidegate TO tenant;
    GRANT EXECUTE ON ALL ROUTINES IN SCHEMA tidegate TO tenant;
    GRANT SELECT, INSERT, UPDATE, DELETE ON tidegate.states TO tenant;
    INSERT INTO tidegate.states VALUES ('role:hidden', 5, 1); ALTER TABLE tidegate.states ENABLE ROW LEVEL SECURITY`);
  const store = fixture.store({}, { user: "tenant" });
  const limit = stock("role", 10);
  const rule = /row-level security policy .*; .* no row-level security$/;
  await expect(store.decide(take(limit, "k"))).rejects.toThrow(rule);
  await fixture.rows("CREATE POLICY add ON tidegate.states FOR INSERT WITH CHECK (true)");
  await expect(store.decide(take(limit, "hidden"))).rejects.toThrow(rule);
  await fixture.rows("DROP POLICY add ON tidegate.states; ALTER TABLE tidegate.states DISABLE ROW LEVEL SECURITY");
  expect((await store.decide(take(limit, "k"))).ok).toBe(true);
});
