// node run.mjs [--quick] [--rounds 7] [--json figures.json]
//
// One loopback server; contenders take turns in each round, each time in another order, and ratios are the medians of each round's.
import { measured, median, options, publish, shuffled } from "../tables.mjs";
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
const keys = Array.from({ length: KEYS }, (_, i) => `user:${i}`);

/** One caller, one call after another: the median latency, in microseconds. */
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

async function measure(title, unit, makers, how, base) {
  const open = {};
  for (const [name, make] of Object.entries(makers)) open[name] = await make(server.port);
  const figures = Object.fromEntries(Object.keys(open).map((name) => [name, []]));
  for (const { run } of Object.values(open)) await how(run); // warm
  for (let round = 0; round < rounds; round++) {
    for (const [name, { run }] of shuffled(Object.entries(open))) figures[name].push(await how(run));
  }
  for (const { close } of Object.values(open)) close?.();
  return measured({ title, unit, base, rounds: figures, digits: unit.endsWith("µs") ? 1 : 0 });
}

/** One caller: what the server itself measures of each call, by `INFO commandstats`; the round trip is not in it. */
async function serverTime(makers) {
  const { Redis } = await import("ioredis");
  const probe = new Redis({ host: "127.0.0.1", port: server.port });
  const open = {};
  for (const [name, make] of Object.entries(makers)) open[name] = await make(server.port);
  const figures = Object.fromEntries(Object.keys(open).map((name) => [name, []]));
  for (const { run } of Object.values(open)) await latency(run); // warm
  for (let round = 0; round < rounds; round++) {
    for (const [name, { run }] of shuffled(Object.entries(open))) {
      await probe.config("RESETSTAT");
      await latency(run);
      const stats = await probe.info("commandstats");
      const perCall = (command) => new RegExp(`cmdstat_${command}:.*usec_per_call=([\\d.]+)`).exec(stats)?.[1];
      // What a script calls is counted in its time.
      figures[name].push(Number(perCall("evalsha") ?? perCall("eval") ?? perCall("get")));
    }
  }
  for (const { close } of Object.values(open)) close();
  probe.disconnect();
  const title = "one caller, 10,000 keys: the server's own time";
  return measured({ title, unit: "µs", base: "GET (ioredis)", rounds: figures, digits: 1 });
}

/** Calls of one contender before the next has its turn, and of them the first, which are not counted. */
const SLICE = 25;
const SKIPPED = 2;

/**
 * One caller, in turns of a few calls, so that a noisy second affects all. The least tenth of the times: what other
 * programs of the machine add is in the rest.
 */
async function byLayer(makers) {
  const open = [];
  for (const [name, make] of Object.entries(makers)) {
    const { run, close } = await make(server.port);
    open.push([name, run, [], close]);
  }
  const figures = Object.fromEntries(open.map(([name]) => [name, []]));
  const tenth = (times) => times.sort((a, b) => a - b)[Math.floor(times.length / 10)];
  for (let round = -1; round < rounds; round++) {
    for (const [, , times] of open) times.length = 0;
    const end = performance.now() + ms * open.length;
    for (let i = 0; performance.now() < end; i++) {
      for (const [, run, times] of shuffled(open)) {
        for (let call = 0; call < SLICE; call++) {
          const key = keys[((i * SLICE + call) * 7919) % KEYS];
          const began = process.hrtime.bigint();
          await run(key);
          if (call >= SKIPPED) times.push(Number(process.hrtime.bigint() - began) / 1000);
        }
      }
    }
    // The first round warms up.
    if (round >= 0) for (const [name, , times] of open) figures[name].push(tenth(times));
  }
  for (const [, , , close] of open) close();
  const title = "one caller, layer by layer";
  return measured({ title, unit: "p10, µs", base, rounds: figures, digits: 1 });
}

const server = await startServer();
const many = { ...contenders, ...leastOfMany, "pipelined GET, no client": pipelined };
const all = (run) => (run.all ? run.all(ms) : throughput(run));
const base = "GET (ioredis)";
const tables = [
  await measure(`${CALLERS} callers, 10,000 keys`, "decisions a second", many, all, base),
  await measure("one caller, 10,000 keys", "p50, µs", { ...contenders, ...least }, latency, base),
  await serverTime({ ...contenders, ...least }),
  await byLayer(layers),
  await measure("one denied key, one caller", "p50, µs", denied, latency, "tidegate (ioredis)"),
  {
    title: "10,000 calls on a denied key",
    head: ["", "script calls that the server saw"],
    rows: await roundTrips(),
  },
];
const versions = Object.fromEntries(
  ["ioredis", "redis", "rate-limit-redis", "rate-limiter-flexible"].map((name) => [name, versionOf(name)]),
);
publish(given, tables, { ...versions, server: await serverVersion() });
server.stop();
process.exit(0);

async function serverVersion() {
  const { Redis } = await import("ioredis");
  const probe = new Redis({ host: "127.0.0.1", port: server.port });
  const version = /redis_version:(\S+)/.exec(await probe.info("server"))?.[1];
  probe.disconnect();
  return `Redis ${version}`;
}

/** Commands that the server counted during 10,000 denied calls. */
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
    rows.push([name, `${(await scripts()) - before}`]);
    close();
  }
  probe.disconnect();
  return rows;
}
