// node run.mjs [--quick] [--rounds 7] [--json figures.json]
//
// The file store beside its alternatives: a Redis on loopback with one caller, and rate-limiter-flexible's
// cluster mode, where two processes call a primary. Contenders take turns; ratios are the medians of each round's.
import cluster from "node:cluster";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { versionOf } from "../installed.mjs";
import { startServer } from "../redis/server.mjs";
import { inRounds, measured, options, publish } from "../tables.mjs";
import { alone, inCluster } from "./contenders.mjs";

const given = options(7);
const ms = given.quick ? 300 : 1000;
const PROCESSES = 2;

const root = mkdtempSync(join(tmpdir(), "tidegate-bench-file-"));
let folders = 0;
const folder = () => join(root, `${folders++}`);

/** One process, one call after another: decisions per second. */
async function oneCaller(make) {
  const { run, close } = await make({ folder: folder(), port: server.port });
  await run(ms / 4);
  const began = performance.now();
  const done = await run(ms);
  const took = performance.now() - began;
  await close();
  return (done * 1000) / took;
}

/** Two workers of a cluster at once: decisions per second, together. */
async function workers(name) {
  const env = { CONTENDER: name, FOLDER: folder(), MS: `${ms}` };
  const each = Array.from({ length: PROCESSES }, () => cluster.fork(env));
  const message = (type) => (worker) =>
    new Promise((resolve, reject) => {
      worker.on("message", (message) => message.type === type && resolve(message));
      worker.on("exit", (code) => reject(new Error(`a worker of ${name} ended with ${code}`)));
    });
  const done = each.map(message("done"));
  for (const one of done) one.catch(() => {});
  await Promise.all(each.map(message("ready")));
  for (const worker of each) worker.send({ type: "go" });
  const figures = await Promise.all(done);
  for (const worker of each) worker.disconnect();
  return figures.reduce((sum, { perSecond }) => sum + perSecond, 0);
}

async function measure(title, base, contenders, how) {
  const figures = await inRounds(given.rounds, contenders, how);
  return measured({ title, unit: "decisions a second", base, rounds: figures });
}

cluster.setupPrimary({ exec: new URL("worker.mjs", import.meta.url).pathname });
inCluster["rate-limiter-flexible, 256 callers each"].primary();
const server = await startServer();
const tables = [
  await measure("One process, 10,000 keys", "tidegate/redis, one caller", alone, oneCaller),
  await measure(
    `A cluster of ${PROCESSES} processes, 10,000 keys`,
    "rate-limiter-flexible, 256 callers each",
    inCluster,
    (_, name) => workers(name),
  ),
];
publish(given, tables, { "rate-limiter-flexible": versionOf("rate-limiter-flexible") });
server.stop();
rmSync(root, { recursive: true, force: true });
process.exit(0);
