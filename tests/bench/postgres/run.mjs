// node run.mjs [--quick] [--rounds 5] [--json figures.json]
//
// Decisions through pg's Pool on a server of this run, with durable settings. Contenders take turns in each round.
import pg from "pg";
import { versionOf } from "../installed.mjs";
import { inRounds, measured, median, options, publish } from "../tables.mjs";
import { flexible, select1, tidegate, unlogged, upsert } from "./contenders.mjs";
import { startServer } from "./server.mjs";

const given = options(5);
const ms = given.quick ? 100 : 1000;
const KEYS = Array.from({ length: 10_000 }, (_, i) => `user:${i}`);
const anyKey = () => KEYS[Math.floor(Math.random() * KEYS.length)];
const hotKey = () => "hot";

const cases = [
  { title: "256 callers, 10,000 keys", callers: 256, key: anyKey },
  { title: "64 callers on one key", callers: 64, key: hotKey },
  { title: "one caller, 10,000 keys", callers: 1, key: anyKey, p50: true },
];

/** Runs callers for so long: decisions per second, or the median latency of a single caller. */
async function measure(decide, { callers, key, p50 }, ms) {
  const waits = [];
  let done = 0;
  const started = performance.now();
  const until = started + ms;
  const caller = async () => {
    for (;;) {
      const before = performance.now();
      if (before >= until) return;
      await decide(key());
      done++;
      if (p50) waits.push((performance.now() - before) * 1000);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return p50 ? median(waits) : (done / (performance.now() - started)) * 1000;
}

const server = await startServer();
// Also after an uncaught error: no server stays behind.
process.on("exit", () => server.stop());
const pool = new pg.Pool({ ...server.options, max: 20 });
const { rows } = await pool.query(
  "SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit",
);
const open = {};
for (const { name, open: start } of [select1, upsert, flexible, tidegate, unlogged]) open[name] = await start(pool);
const tables = [];
for (const one of cases) {
  for (const decide of Object.values(open)) await measure(decide, one, ms / 3);
  const rounds = await inRounds(given.rounds, open, (decide) => measure(decide, one, ms));
  const unit = one.p50 ? "p50, µs" : "decisions a second";
  tables.push(measured({ title: one.title, unit, base: select1.name, rounds }));
}
const [{ version, fsync, commit }] = rows;
publish(given, tables, {
  server: `PostgreSQL ${version}, fsync ${fsync}, synchronous_commit ${commit}`,
  pg: versionOf("pg"),
  "rate-limiter-flexible": versionOf("rate-limiter-flexible"),
});
await pool.end();
