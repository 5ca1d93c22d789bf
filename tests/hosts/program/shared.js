// The native addon: every vector and the store suite on the table of the process, and four threads on one key.
import { Worker } from "node:worker_threads";
import { shared } from "tidegate/shared";
import { report } from "./report.js";
import vectors from "./vectors.js";

const store = shared();
/** The keys of a test, which the next one resets: a process has one table. */
let used = [];

function fresh() {
  for (const { limit, key } of used) store.reset(limit, key);
  used = [];
  return {
    name: store.name,
    sync: true,
    decide(call, now) {
      used.push(call);
      return store.decide(call, now);
    },
    decideAll(calls, now) {
      used.push(...calls);
      return store.decideAll(calls, now);
    },
    reset: (limit, key) => store.reset(limit, key),
    getValue: (limit, key, now) => store.getValue(limit, key, now),
  };
}

const results = await report({ create: fresh, vectors });
const threads = Array.from({ length: 4 }, () => {
  const workerData = { calls: 2000, keys: 50, run: "host", now: 1_800_000_000_000 };
  const worker = new Worker(new URL("threads.mjs", import.meta.url), { workerData });
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
});
console.log(JSON.stringify({ results, threads: await Promise.all(threads) }));
