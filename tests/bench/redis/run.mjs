// node run.mjs [--quick] [--rounds 7] [--json figures.json]
//
// One loopback server; contenders take turns in each round, and ratios are the medians of each round's.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { contenders, denied } from "./contenders.mjs";
import { startServer } from "./server.mjs";
import { pipelined } from "./pipelined.mjs";

const { values } = parseArgs({
  options: { quick: { type: "boolean" }, rounds: { type: "string" }, json: { type: "string" } },
});
const rounds = Number(values.rounds ?? (values.quick ? 1 : 7));
const ms = values.quick ? 100 : 700;
const KEYS = 10_000;
const CALLERS = 256;
const keys = Array.from({ length: KEYS }, (_, i) => `user:${i}`);

const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

/** One caller, one call after another: the middle of their times, in microseconds. */
async function latency(run) {
  const took = [];
  const end = performance.now() + ms;
  for (let i = 0; performance.now() < end; i++) {
    const key = keys[(i * 7919) % KEYS];
    const began = process.hrtime.bigint();
    await run(key);
    took.push(Number(process.hrtime.bigint() - began) / 1000);
  }
  return median(took);
}

/** Many callers, each asking again as soon as it is answered: answers a second. */
async function throughput(run) {
  let done = 0;
  let stop = false;
  const caller = async (at) => {
    for (let i = at; !stop; i += 7919) {
      await run(keys[i % KEYS]);
      done++;
    }
  };
  const began = performance.now();
  setTimeout(() => {
    stop = true;
  }, ms);
  await Promise.all(Array.from({ length: CALLERS }, (_, i) => caller(i * 39)));
  return (done * 1000) / (performance.now() - began);
}

async function measure(title, unit, makers, how, base) {
  const open = {};
  for (const [name, make] of Object.entries(makers)) open[name] = await make(server.port);
  const figures = Object.fromEntries(Object.keys(open).map((name) => [name, []]));
  for (const { run } of Object.values(open)) await how(run); // warm
  for (let round = 0; round < rounds; round++) {
    for (const [name, { run }] of Object.entries(open)) figures[name].push(await how(run));
  }
  for (const { close } of Object.values(open)) close?.();
  console.log(`\n${title}`);
  const rows = Object.entries(figures).map(([name, of]) => {
    const ratios = of.map((figure, round) => figure / figures[base][round]);
    return {
      contender: name,
      [unit]: Math.round(median(of) * 10) / 10,
      [`ratio to ${base}`]: Math.round(median(ratios) * 1000) / 1000,
    };
  });
  console.table(rows);
  return rows;
}

const server = await startServer();
const figures = {};
const one = Object.fromEntries(Object.entries(contenders));
figures.latency = await measure("one caller, 10,000 keys", "p50, microseconds", one, latency, "GET (ioredis)");
const many = { ...one, "pipelined GET, no client": pipelined };
figures.throughput = await measure(
  `${CALLERS} callers, 10,000 keys`,
  "answers a second",
  many,
  (run) => (run.all ? run.all(ms) : throughput(run)),
  "GET (ioredis)",
);
figures.denied = await measure(
  "one denied key, one caller",
  "p50, microseconds",
  denied,
  latency,
  "tidegate (ioredis)",
);
figures.roundTrips = await roundTrips();
console.log("\nround trips of 10,000 calls on a denied key");
console.table(figures.roundTrips);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(figures, null, 2)}\n`);
server.stop();
process.exit(0);

/** Commands that the server counted while 10,000 calls were denied. */
async function roundTrips() {
  const { Redis } = await import("ioredis");
  const probe = new Redis({ host: "127.0.0.1", port: server.port });
  const scripts = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await probe.info("commandstats"))?.[1] ?? 0);
  const rows = [];
  for (const [name, make] of Object.entries(denied)) {
    const { run, close } = await make(server.port);
    await run();
    const before = await scripts();
    for (let i = 0; i < 10_000; i++) await run();
    rows.push({ contender: name, "script calls": (await scripts()) - before });
    close();
  }
  probe.disconnect();
  return rows;
}
