// node sql.mjs [--quick] [--rounds 9] [--json figures.json]
//
// Calls from SQL on a hot key, on new keys, and denied: 8 clients of pgbench on prepared statements, durable settings,
// contenders taking turns in each round. The plain functions are what articles on rate limits in PostgreSQL show: one
// table, and one upsert, or a row that is locked, computed and written.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { migrate } from "tidegate/postgres";
import { measured, options, publish } from "../tables.mjs";
import { program, startServer } from "./server.mjs";

const given = options(9);
const seconds = given.quick ? 1 : 2;

const PLAIN = `CREATE TABLE buckets (key text PRIMARY KEY, tokens float8 NOT NULL, updated timestamptz NOT NULL);
CREATE FUNCTION take_token(k text, capacity float8, per_second float8) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO buckets AS b VALUES (k, capacity - 1, clock_timestamp())
  ON CONFLICT (key) DO UPDATE SET
    tokens = LEAST(capacity, b.tokens + EXTRACT(EPOCH FROM clock_timestamp() - b.updated) * per_second) - 1,
    updated = clock_timestamp()
  WHERE LEAST(capacity, b.tokens + EXTRACT(EPOCH FROM clock_timestamp() - b.updated) * per_second) >= 1;
  RETURN FOUND;
END $$;
CREATE FUNCTION take_locked(k text, capacity float8, per_second float8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  b buckets;
  at timestamptz := clock_timestamp();
  left_over float8 := capacity;
BEGIN
  SELECT * INTO b FROM buckets WHERE key = k FOR UPDATE;
  IF FOUND THEN left_over := LEAST(capacity, b.tokens + EXTRACT(EPOCH FROM at - b.updated) * per_second); END IF;
  IF left_over < 1 THEN RETURN false; END IF;
  INSERT INTO buckets VALUES (k, left_over - 1, at)
  ON CONFLICT (key) DO UPDATE SET tokens = EXCLUDED.tokens, updated = EXCLUDED.updated;
  RETURN true;
END $$;`;
/** What the library sends for one take. */
const sent = (
  key,
  capacity,
  period,
) => `SELECT tidegate.in_time(CASE WHEN set_config('lock_timeout', '10000', true) <> ''
  THEN tidegate.take_row(tidegate.id('api', ${key}), ${capacity}, ${period}, ${capacity}, NULL::float8, 1) END, 10000)`;
/** Each contender's call on a key of its own, with so many tokens that come back in so many ms. */
const CALLS = {
  "plain upsert": (key, capacity, period) =>
    `SELECT take_token('u' || ${key}, ${capacity}, ${capacity / period} * 1000)`,
  "plain FOR UPDATE": (key, capacity, period) =>
    `SELECT take_locked('l' || ${key}, ${capacity}, ${capacity / period} * 1000)`,
  "tidegate.decide": (key, capacity, period) =>
    `SELECT * FROM tidegate.decide('take', 'api', 'd' || ${key}, ${capacity}, ${period})`,
  "what the library sends": (key, capacity, period) => sent(`'s' || ${key}`, capacity, period),
};
const CASES = [
  // So much that nothing is denied, and every call writes.
  { title: "8 clients of pgbench on one key", key: "'hot'", capacity: 1e9, period: 1000 },
  { title: "8 clients of pgbench, each call on a new key", key: "gen_random_uuid()", capacity: 1e9, period: 1000 },
  { title: "8 clients of pgbench, denied", key: "'denied'", capacity: 1, period: 1e12 },
];

const server = await startServer();
const folder = mkdtempSync(join(tmpdir(), "tidegate-sql-"));
// Also after an uncaught error.
process.on("exit", () => {
  server.stop();
  rmSync(folder, { recursive: true, force: true });
});
const { host, port, user, database } = server.options;
const pool = new pg.Pool(server.options);
await migrate(pool);
await pool.query(PLAIN);
const { rows } = await pool.query("SELECT current_setting('server_version') AS version");
await pool.end();

function perSecond(file) {
  const args = ["-n", "-M", "prepared", "-c", "8", "-j", "1", "-T", String(seconds), "-f", file];
  const at = ["-h", host, "-p", String(port), "-U", user, database];
  const out = execFileSync(program("pgbench"), [...args, ...at], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  return Number(/tps = ([\d.]+)/.exec(out)[1]);
}
const [base] = Object.keys(CALLS);
const tables = [];
for (const [n, { title, key, capacity, period }] of CASES.entries()) {
  const files = Object.entries(CALLS).map(([name, call], i) => {
    const file = join(folder, `${n}-${i}.sql`);
    writeFileSync(file, `${call(key, capacity, period).replace(/\s+/g, " ")};\n`);
    return [name, file];
  });
  const found = Object.fromEntries(files.map(([name]) => [name, []]));
  for (const [, file] of files) perSecond(file);
  for (let round = 0; round < given.rounds; round++) {
    for (const [name, file] of files) found[name].push(perSecond(file));
  }
  tables.push(measured({ title, unit: "calls a second", base, rounds: found }));
}
publish(given, tables, { server: `PostgreSQL ${rows[0].version}` });
