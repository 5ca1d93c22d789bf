// node soak.mjs [--seconds 600] [--only memory,shared,file,lease] [--warm 300]
//
// One process decides for new keys at full speed, on each store in turn and again, while its memory is sampled:
// RSS and the JavaScript heap (after a full collection) at each tenth of the run, at most every 10 s. It fails if either
// exceeds the value after the warm-up by BOUND: a leak of one byte per decision would be far more than that. The warm-up lasts
// until every store keeps as much as it may, however slow the machine is.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Redis } from "ioredis";
import { defineLimits, memory, SECOND } from "tidegate";
import { file } from "tidegate/file";
import { redis } from "tidegate/redis";
import { shared } from "tidegate/shared";
import { startServer } from "./redis/server.mjs";

const { values } = parseArgs({
  options: { seconds: { type: "string" }, only: { type: "string" }, warm: { type: "string" } },
});
const seconds = Number(values.seconds ?? 600);
const warm = Number(values.warm ?? seconds / 2);
const only = values.only?.split(",");
/** The most that may be added after the warm-up, in bytes: RSS (allocators round up, and free late), and heap. */
const BOUND = { rss: 64 * 2 ** 20, heap: 4 * 2 ** 20 };
const MAX_KEYS = 20_000;
/** Keys by which every store is full: each key makes at least two states, leases or denials, of which it keeps 20,000 or 10,000. */
const WARM_KEYS = 10_000;
const SLICE_MS = 250;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
const LIMITS = {
  bucket: { kind: "token bucket", rate: 10, period: SECOND },
  window: { kind: "fixed window", rate: 10, period: SECOND },
  shards: { kind: "token bucket", rate: 10, period: SECOND, shards: 4 },
};
const folder = mkdtempSync(join(tmpdir(), "tidegate-soak-"));
const closers = [() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 })];

const OPEN = {
  memory: () => defineLimits(LIMITS, { store: memory({ maxKeys: MAX_KEYS }) }),
  shared: () => defineLimits(LIMITS, { store: shared({ maxKeys: MAX_KEYS }) }),
  file: () => {
    const store = file(join(folder, "states"), { maxKeys: MAX_KEYS });
    closers.unshift(() => store.close());
    return defineLimits(LIMITS, { store });
  },
  lease: async () => {
    const server = await startServer();
    const client = new Redis({ host: "127.0.0.1", port: server.port });
    const { shards, ...leased } = LIMITS; // leases have no shards
    const limits = defineLimits(leased, { store: redis(client, { lease: true }), timeout: 10_000 });
    closers.unshift(async () => {
      await limits.release();
      client.disconnect();
      server.stop();
    });
    return limits;
  },
};

let made = 0;
/** Decides until the slice is over. */
async function slice(store, until) {
  const { limits, names } = store;
  while (performance.now() < until) {
    const keys = Array.from({ length: 100 }, () => `${(made++).toString(36)}-a-user`);
    store.keys += keys.length;
    // Granted, then denied.
    for (let turn = 0; turn < 2; turn++) {
      const answers = [];
      for (const key of keys) for (const name of names) answers.push(limits.limit(name, { key, count: 6 }));
      store.decided += answers.length;
      if (answers[0] instanceof Promise) await Promise.all(answers);
    }
    await new Promise(setImmediate);
  }
}

function weigh() {
  collect();
  collect();
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heap: heapUsed };
}

const mb = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
const stores = [];
for (const [name, open] of Object.entries(OPEN)) {
  if (only === undefined || only.includes(name)) {
    const names = Object.keys(LIMITS).filter((limit) => name !== "lease" || limit !== "shards");
    stores.push({ name, names, limits: await open(), keys: 0, decided: 0 });
  }
}
const began = performance.now();
const passed = () => (performance.now() - began) / 1000;
let [base, shown, most] = [undefined, 0, { rss: 0, heap: 0 }];
const step = Math.min(10, seconds / 10);
let weighed = 0;
// On a slow machine, at least so often.
while (passed() < seconds || weighed < 3) {
  for (const store of stores) await slice(store, performance.now() + SLICE_MS);
  if (passed() - shown < step) continue;
  shown = passed();
  const now = weigh();
  if (shown >= warm && stores.every(({ keys }) => keys >= WARM_KEYS)) base ??= now;
  if (base) weighed++;
  if (base) most = { rss: Math.max(most.rss, now.rss - base.rss), heap: Math.max(most.heap, now.heap - base.heap) };
  console.log(`${shown.toFixed(0).padStart(4)} s  RSS ${mb(now.rss)}  heap ${mb(now.heap)}  keys ${made}`);
}
for (const close of closers) await close();
for (const { name, decided } of stores) console.log(`${name}: ${decided} decisions`);
const flat = base !== undefined && most.rss <= BOUND.rss && most.heap <= BOUND.heap;
console.log(
  `${flat ? "flat" : "GROWS"}: after the warm-up at most RSS +${mb(most.rss)} (bound ${mb(BOUND.rss)}), ` +
    `heap +${mb(most.heap)} (bound ${mb(BOUND.heap)})`,
);
process.exitCode = flat ? 0 : 1;
