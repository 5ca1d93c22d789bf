// `node run.mjs [seconds] [rounds]`: decisions through pg's Pool on a server of this run's own, durable settings. All
// contenders take turns in each round; what is told are medians, and their ratios.
import os from "node:os";
import pg from "pg";
import { flexible, select1, tidegate, unlogged, upsert } from "./contenders.mjs";
import { startServer } from "./server.mjs";

const seconds = Number(process.argv[2] ?? 1);
const rounds = Number(process.argv[3] ?? 5);
const KEYS = Array.from({ length: 10_000 }, (_, i) => `user:${i}`);
const anyKey = () => KEYS[Math.floor(Math.random() * KEYS.length)];
const hotKey = () => "hot";

const cases = [
  {
    name: "one caller, microseconds (p50)",
    callers: 1,
    key: anyKey,
    p50: true,
    contenders: [select1, upsert, flexible, tidegate, unlogged],
  },
  {
    name: "256 callers on 10,000 keys, decisions a second",
    callers: 256,
    key: anyKey,
    contenders: [select1, upsert, flexible, tidegate, unlogged],
  },
  {
    name: "64 callers on one key, decisions a second",
    callers: 64,
    key: hotKey,
    contenders: [select1, upsert, flexible, tidegate, unlogged],
  },
];

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** Runs callers for so long: decisions a second, or the median wait of a single one. */
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
// However it ends: an error that nobody catches leaves no server behind.
process.on("exit", () => server.stop());
const pool = new pg.Pool({ ...server.options, max: 20 });
const { rows } = await pool.query(
  "SELECT version(), current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit",
);
console.log(
  `${rows[0].version}\nfsync ${rows[0].fsync}, synchronous_commit ${rows[0].commit}; Node ${process.version}, ${os.cpus().length} cores; pool of 20, ${rounds} rounds of ${seconds} s, medians`,
);
const open = new Map();
for (const contender of [select1, upsert, flexible, tidegate, unlogged])
  open.set(contender, await contender.open(pool));
for (const one of cases) {
  const found = new Map(one.contenders.map((contender) => [contender, []]));
  for (const [contender, decide] of open) if (found.has(contender)) await measure(decide, one, 300);
  for (let round = 0; round < rounds; round++) {
    for (const [contender, list] of found) list.push(await measure(open.get(contender), one, seconds * 1000));
  }
  const at = (contender) => median(found.get(contender));
  console.log(`\n${one.name}`);
  for (const [contender, list] of found) {
    const low = Math.min(...list);
    const high = Math.max(...list);
    console.log(
      `  ${contender.name.padEnd(24)} ${at(contender).toFixed(0).padStart(8)}   (${low.toFixed(0)} to ${high.toFixed(0)})`,
    );
  }
  const ratio = (a, b) => (at(a) / at(b)).toFixed(2);
  console.log(
    `  tidegate is ${ratio(tidegate, upsert)} x the upsert, ${ratio(tidegate, flexible)} x rate-limiter-flexible; unlogged ${ratio(unlogged, select1)} x SELECT 1`,
  );
}
await pool.end();
