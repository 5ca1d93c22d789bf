// node sql.mjs [--quick] [--rounds 9] [--json figures.json]
//
// One hot key from SQL: 8 clients of pgbench on prepared statements, durable settings, contenders taking turns in each
// round. The plain function is what articles on rate limits in PostgreSQL show: one table, one upsert.
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
END $$;`;
/** So much that nothing is denied, and every call writes. */
const CALLS = {
  "plain plpgsql function": "SELECT take_token('hot', 1e9, 1e9)",
  "tidegate.decide": "SELECT * FROM tidegate.decide('take', 'api', 'hot', 1e9, 1000)",
  "what the library sends": `SELECT tidegate.in_time(CASE WHEN set_config('lock_timeout', '10000', true) <> '' THEN
    tidegate.take_row(tidegate.id('api', 'warm'), 1e9, 1000, 1e9, NULL::float8, 1) END, 10000)`,
};

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

const files = Object.entries(CALLS).map(([name, call], i) => {
  const file = join(folder, `${i}.sql`);
  writeFileSync(file, `${call.replace(/\s+/g, " ")};\n`);
  return [name, file];
});
function perSecond(file) {
  const args = ["-n", "-M", "prepared", "-c", "8", "-j", "1", "-T", String(seconds), "-f", file];
  const at = ["-h", host, "-p", String(port), "-U", user, database];
  const out = execFileSync(program("pgbench"), [...args, ...at], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  return Number(/tps = ([\d.]+)/.exec(out)[1]);
}
const found = Object.fromEntries(files.map(([name]) => [name, []]));
for (const [, file] of files) perSecond(file);
for (let round = 0; round < given.rounds; round++) {
  for (const [name, file] of files) found[name].push(perSecond(file));
}
const [base] = Object.keys(CALLS);
const title = "8 clients of pgbench on one key";
publish(given, [measured({ title, unit: "calls a second", base, rounds: found })], {
  server: `PostgreSQL ${rows[0].version}`,
});
