// One and two worker threads, each calling as fast as it can; decisions per second of all of them together.
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { fileURLToPath } from "node:url";
import { load } from "./contenders.mjs";
import { requests } from "./keys.mjs";
import { immediate, PERIOD_MS } from "./speed.mjs";

/** `keys` 1 is one hot key for all threads; otherwise each thread has its own. */
export async function threads({ contender, workers, keys, measureMs }) {
  const crew = Array.from(
    { length: workers },
    (_, thread) => new Worker(fileURLToPath(import.meta.url), { workerData: { contender, keys, measureMs, thread } }),
  );
  const message = (worker) =>
    new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
  await Promise.all(crew.map(message)); // all are warm
  const results = crew.map(message);
  for (const worker of crew) worker.postMessage("go");
  const runs = await Promise.all(results);
  return { perSecond: runs.reduce((sum, { calls, ns }) => sum + (calls * 1e9) / ns, 0) };
}

async function work({ contender, keys, measureMs, thread }) {
  const limiter = await load(contender, { capacity: 1_000_000_000, rate: 1, periodMs: PERIOD_MS, maxKeys: 4 * keys });
  const next = requests("prepared", keys, keys === 1 ? 0 : thread * keys);
  let granted = immediate(limiter, next, Math.max(keys, 100_000));
  parentPort.postMessage("warm");
  await new Promise((resolve) => parentPort.once("message", resolve));
  const begun = process.hrtime.bigint();
  let calls = 0;
  let ns = 0;
  granted = 0;
  while (ns < measureMs * 1e6) {
    granted += immediate(limiter, next, 10_000);
    calls += 10_000;
    ns = Number(process.hrtime.bigint() - begun);
  }
  if (granted !== calls) throw new Error(`${contender}: ${granted} of ${calls} granted`);
  parentPort.postMessage({ calls, ns });
}

if (!isMainThread) await work(workerData);
