import { expect, test } from "vitest";
import { Limit } from "tidegate/store";
import { stock, take, withServer } from "./fixture.ts";
import { versionOf } from "./stored.ts";

const fixture = withServer();
const transactions = async (): Promise<unknown> =>
  (await fixture.rows("SELECT txid_snapshot_xmax(txid_current_snapshot())::text AS next"))[0]?.["next"];

test("a denial or a check touches no row and begins no writing transaction", async () => {
  const store = fixture.store();
  const limit = stock("free", 10);
  const other = stock("other", 10);
  const sharded = stock("parts", 10, { shards: 4 });
  const window = new Limit("window", { kind: "fixed window", rate: 2, period: 1e9 });
  await store.decide(take(limit, "k", 9));
  await store.decide(take(limit, "l", 9));
  await store.decide(take(sharded, "k", 9));
  await store.decide(take(window, "k", 2));
  const ids = ["free:k", "free:l", "window:k", "parts:k"];
  const versions = async (): Promise<unknown[]> => {
    const all: unknown[] = [];
    for (const id of ids) all.push(await versionOf(fixture.rows, id));
    return all;
  };
  const before = await versions();
  expect(before.every((version) => version !== undefined)).toBe(true);
  const next = await transactions();

  const denied = [
    await store.decide(take(limit, "k", 5)),
    await store.decide(take(window, "k")),
    await store.decide(take(sharded, "k", 5)),
    await store.decide(take(limit, "k", 5, { op: "check" })),
    await store.decide(take(sharded, "k", 5, { op: "check" })),
    ...(await Promise.all(["k", "l", "k", "k"].map((key) => store.decide(take(limit, key, 5))))),
    ...(await Promise.all(["k", "l"].map((key) => store.decide(take(limit, key, 5))))),
    await store.decideAll([take(other, "k", 5), take(limit, "k", 5)]),
    await store.decideAll([take(other, "k", 5), take(sharded, "k", 5)]),
  ];
  expect(denied.map(({ ok }) => ok)).toEqual(denied.map(() => false));
  expect((await store.decide(take(limit, "k", 1, { op: "check" }))).ok).toBe(true);
  expect((await store.decide(take(limit, "k", 0))).ok).toBe(true);
  expect((await store.decide(take(limit, "none", 0))).ok).toBe(true);
  expect((await store.decide(take(limit, "none", 5, { op: "check" }))).ok).toBe(true);
  expect((await store.decide(take(limit, "none", 5, { op: "give" }))).ok).toBe(true);
  expect((await store.decide(take(limit, "k", 100))).reason).toBe("exceeds capacity");
  await store.getValue(limit, "k");
  await store.getValue(sharded, "k");

  expect(await versions()).toEqual(before);
  expect(await transactions()).toBe(next);
  expect(await fixture.rows("SELECT id FROM tidegate.states WHERE id IN ('free:none', 'other:k')")).toEqual([]);
});

test.each([
  ["a trigger that skips new rows", "CREATE TRIGGER skip BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION skip()"],
  ["a trigger that skips changes", "CREATE TRIGGER skip BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION skip()"],
  [
    "row-level security without a policy for changes",
    `ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY sees ON t FOR SELECT USING (true);
     CREATE POLICY inserts ON t FOR INSERT WITH CHECK (true)`,
  ],
])("%s: nothing is granted, and the error names both", async (what, obstacle) => {
  const schema = what.replaceAll(" ", "_");
  await fixture.store({ schema }).migrate();
  const table = `"${schema}".states`;
  const limit = stock("k", 10);
  // Rows that exist: those without one are inserted.
  const keys = what.includes("new") ? ["new", "other"] : ["k", "l"];
  await fixture.rows(`CREATE OR REPLACE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    INSERT INTO ${table} VALUES ('k:k', 9, 0), ('k:l', 9, 0);
    DO $$ BEGIN CREATE ROLE limited LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
    GRANT USAGE ON SCHEMA "${schema}" TO limited; GRANT SELECT, INSERT, UPDATE, DELETE ON ${table} TO limited;
    ${obstacle.replaceAll(" ON t ", ` ON ${table} `).replace("TABLE t ", `TABLE ${table} `)}`);
  const store = fixture.store({ schema }, { user: "limited", statement_timeout: 5000 });
  const ours = /a trigger .* row-level security/;
  // PostgreSQL 15.20 refuses an upsert under row-level security itself.
  const upsert = what.startsWith("row-level") ? new RegExp(`${ours.source}|violates row-level security`) : ours;
  const error = (message: RegExp) => ({ code: "TIDEGATE_STORE", message: expect.stringMatching(message) });
  await expect(store.decide(take(limit, keys[0]))).rejects.toMatchObject(error(ours));
  await expect(store.decide(take(limit, keys[0], 1, { reserve: true }))).rejects.toMatchObject(error(upsert));
  await expect(store.decideAll(keys.map((key) => take(limit, key)))).rejects.toMatchObject(error(upsert));
  const sql = `SELECT ok FROM "${schema}".decide('take', 'k', '${keys[0]}', 1e-9, ${2 ** 40}, 10)`;
  await expect(fixture.pool({ user: "limited", statement_timeout: 5000 }).query(sql)).rejects.toThrow(upsert);
});

test.each([
  [
    "row-level security",
    `ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY most ON t USING (id <> 'k:k') WITH CHECK (id <> 'k:k')`,
  ],
  [
    "a trigger that raises",
    "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION refuse()",
  ],
  ["a trigger that skips", "CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION skip_one()"],
  ["a check constraint", "ALTER TABLE t ADD CHECK (id <> 'k:k') NOT VALID"],
])("%s that refuses one key fails the calls on that key alone", async (what, obstacle) => {
  const schema = `one ${what}`;
  await fixture.store({ schema }).migrate();
  const table = `"${schema}".states`;
  await fixture.rows(`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF NEW.id = ''k:k'' THEN RAISE EXCEPTION ''no''; END IF; RETURN NEW; END';
    CREATE OR REPLACE FUNCTION skip_one() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF NEW.id = ''k:k'' THEN RETURN NULL; END IF; RETURN NEW; END';
    DO $$ BEGIN CREATE ROLE limited LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
    GRANT USAGE ON SCHEMA "${schema}" TO limited; GRANT SELECT, INSERT, UPDATE, DELETE ON ${table} TO limited;
    ${obstacle.replaceAll(" ON t ", ` ON ${table} `).replaceAll("TABLE t ", `TABLE ${table} `)}`);
  const store = fixture.store({ schema, statements: 1 }, { user: "limited" });
  for (let turn = 0; turn < 2; turn++) {
    const [refused, ...others] = await Promise.allSettled(
      ["k", "l", "m"].map((key) => store.decide(take(stock("k", 10), key))),
    );
    expect(refused).toMatchObject({ status: "rejected", reason: { code: "TIDEGATE_STORE", scope: "key" } });
    for (const other of others) expect(other).toMatchObject({ status: "fulfilled", value: { ok: true } });
  }
});
