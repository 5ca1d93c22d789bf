// One thread: says how many tokens of one key it got.
import { parentPort, workerData } from "node:worker_threads";
import { defineLimits } from "tidegate";
import { file } from "tidegate/file";

const bucket = { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 1000 };
const limits = defineLimits({ one: bucket }, { store: file(workerData), now: () => 1_800_000_000_000 });
let got = 0;
for (let i = 0; i < 600; i++) if (limits.limit("one", { key: "hot" }).ok) got++;
parentPort.postMessage(got);
