// `node examples/vendor-quota-fleet/fleet.mjs`, after `npm run build`: a vendor, a Redis, and workers that share one quota.
// REDIS_URL is an existing Redis; without it one is started. WORKERS, JOBS, QUOTA and PERIOD_MS are the numbers of the run.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { policy, PERIOD, QUOTA } from "./quota.mjs";
import { vendor } from "./vendor.mjs";

const { WORKERS = "3", JOBS = "36" } = process.env;

/** Runs a program with this terminal, and settles as it exits. */
const run = (command, args, env) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: "inherit" });
    child.once("error", reject);
    child.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`${args.join(" ")} ended with ${code}`))));
  });

/** A Redis for the duration of this run. The workers' client retries until it responds. */
async function ownRedis() {
  const probe = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => probe.once("listening", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  const child = spawn("redis-server", ["--port", `${port}`, "--bind", "127.0.0.1", "--save", ""], { stdio: "ignore" });
  child.once("error", () => {
    console.error("There is no redis-server here: install it, or set REDIS_URL to one that runs.");
    process.exit(1);
  });
  return { url: `redis://127.0.0.1:${port}`, stop: () => child.kill() };
}

const store = process.env.REDIS_URL === undefined ? await ownRedis() : { url: process.env.REDIS_URL, stop: () => {} };
const api = await vendor();
console.log(
  `The vendor allows ${QUOTA} requests in ${PERIOD / 1000} s; the fleet takes ${policy.rate}, and ${policy.capacity} at once.`,
);
const began = Date.now();
try {
  const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
  const names = Array.from({ length: Number(WORKERS) }, (_, i) => `worker ${i + 1}`);
  await Promise.all(
    names.map((NAME) => run(process.execPath, [worker], { NAME, JOBS, REDIS_URL: store.url, VENDOR_URL: api.url })),
  );
  const { arrivals, denied } = api.seen;
  console.log(`${arrivals.length} requests in ${(Date.now() - began) / 1000} s, ${denied} of them denied.`);
  if (process.env.REPORT === "1") console.log(JSON.stringify({ began, arrivals, denied }));
} finally {
  api.close();
  store.stop();
}
