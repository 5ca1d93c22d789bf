// Four threads on one folder, which only they have open: prints how many tokens they got together, and what is left.
import { Worker } from "node:worker_threads";
import { defineLimits } from "tidegate";
import { file } from "tidegate/file";

const [folder] = process.argv.slice(2);
const thread = () =>
  new Promise((resolve, reject) => {
    let got;
    const worker = new Worker(new URL("thread.mjs", import.meta.url), { workerData: folder });
    worker.once("message", (message) => {
      got = message;
    });
    worker.once("error", reject);
    worker.once("exit", () => resolve(got));
  });
const got = await Promise.all([thread(), thread(), thread(), thread()]);
const bucket = { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 1000 };
const limits = defineLimits({ one: bucket }, { store: file(folder), now: () => 1_800_000_000_000 });
console.log(
  got.reduce((sum, one) => sum + one),
  limits.getValue("one", { key: "hot" }).value,
);
