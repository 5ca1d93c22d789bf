// node run.mjs [--quick] [--rounds 7] [--json figures.json]
//
// One loopback server; contenders take turns in each round, each time in another order, and ratios are the medians of each round's.
import { Redis } from "ioredis";
import { inRounds, measured, options, publish, shuffled } from "../tables.mjs";
import { versionOf } from "../installed.mjs";
import { contenders, denied, least, leastOfMany } from "./contenders.mjs";
import { layers } from "./layers.mjs";
import { startServer } from "./server.mjs";
import { pipelined } from "./pipelined.mjs";

const given = options(7);
const { rounds } = given;
const ms = given.quick ? 100 : 700;
const KEYS = 10_000;
const CALLERS = 256;
const GET = "GET (ioredis)";
const keys = Array.from({ length: KEYS }, (_, i) => `user:${i}`);

/** Many callers, each calling again as soon as it has its reply: replies per second. */
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

async function opened(makers) {
  const open = {};
  for (const [name, make] of Object.entries(makers)) open[name] = await make(server.port);
  return open;
}

async function manyCallers(makers) {
  const open = await opened(makers);
  const rate = ({ run }) => (run.all ? run.all(ms) : throughput(run));
  for (const one of Object.values(open)) await rate(one); // warm
  const figures = await inRounds(rounds, open, rate);
  for (const { close } of Object.values(open)) close?.();
  const title = `${CALLERS} callers, 10,000 keys`;
  return measured({ title, unit: "decisions a second", base: GET, rounds: figures });
}

/** One caller: what the server itself measures of each call, by `INFO commandstats`; the round trip is not in it. */
async function serverTime(makers) {
  const open = await opened(makers);
  await inTurns(open); // warm
  const figures = await inRounds(rounds, open, async (one, name) => {
    await probe.config("RESETSTAT");
    await inTurns({ [name]: one });
    const stats = await probe.info("commandstats");
    const perCall = (command) => new RegExp(`cmdstat_${command}:.*usec_per_call=([\\d.]+)`).exec(stats)?.[1];
    // What a script calls is counted in its time.
    return Number(perCall("evalsha") ?? perCall("eval") ?? perCall("get"));
  });
  for (const { close } of Object.values(open)) close();
  const title = "one caller, 10,000 keys: the server's own time";
  return measured({ title, unit: "µs", base: GET, rounds: figures, digits: 1 });
}

/** Calls of one contender before the next has its turn, and of them the first, which are not counted. */
const SLICE = 25;
const SKIPPED = 2;

/** Times of single calls in microseconds, one after another, in turns of a few calls, so that a noisy second affects all. */
async function inTurns(open) {
  const times = Object.fromEntries(Object.keys(open).map((name) => [name, []]));
  const contenders = Object.entries(open);
  const end = performance.now() + ms * contenders.length;
  for (let i = 0; performance.now() < end; i++) {
    for (const [name, { run }] of shuffled(contenders)) {
      for (let call = 0; call < SLICE; call++) {
        const key = keys[((i * SLICE + call) * 7919) % KEYS];
        const began = process.hrtime.bigint();
        await run(key);
        if (call >= SKIPPED) times[name].push(Number(process.hrtime.bigint() - began) / 1000);
      }
    }
  }
  return times;
}

/** One caller: the middle of its times, or the time below which a `part` of them are. */
async function oneCaller(title, makers, { part = 0.5, base = GET } = {}) {
  const open = await opened(makers);
  const figures = Object.fromEntries(Object.keys(open).map((name) => [name, []]));
  await inTurns(open); // warm
  for (let round = 0; round < rounds; round++) {
    for (const [name, times] of Object.entries(await inTurns(open))) {
      figures[name].push(times.sort((a, b) => a - b)[Math.floor(times.length * part)]);
    }
  }
  for (const { close } of Object.values(open)) close();
  return measured({ title, unit: `p${part * 100}, µs`, base, rounds: figures, digits: 1 });
}

const server = await startServer();
const probe = new Redis({ host: "127.0.0.1", port: server.port });
const tables = [
  await manyCallers({ ...contenders, ...leastOfMany, "pipelined GET, no client": pipelined }),
  await oneCaller("one caller, 10,000 keys", { ...contenders, ...least }),
  await serverTime({ ...contenders, ...least }),
  // What other programs of the machine add is in the other nine tenths.
  await oneCaller("one caller, layer by layer", layers, { part: 0.1 }),
  await oneCaller("one denied key, one caller", denied, { base: "tidegate (ioredis)" }),
  {
    title: "10,000 calls on a denied key",
    head: ["", "script calls that the server saw"],
    rows: await roundTrips(),
  },
];
const versions = Object.fromEntries(
  ["ioredis", "redis", "rate-limit-redis", "rate-limiter-flexible"].map((name) => [name, versionOf(name)]),
);
const version = /redis_version:(\S+)/.exec(await probe.info("server"))?.[1];
publish(given, tables, { ...versions, server: `Redis ${version}` });
server.stop();
process.exit(0);

/** Commands that the server counted during 10,000 denied calls. */
async function roundTrips() {
  const scripts = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await probe.info("commandstats"))?.[1] ?? 0);
  const rows = [];
  for (const [name, make] of Object.entries(denied)) {
    const { run, close } = await make(server.port);
    await run();
    const before = await scripts();
    for (let i = 0; i < 10_000; i++) await run();
    rows.push([name, `${(await scripts()) - before}`]);
    close();
  }
  return rows;
}
