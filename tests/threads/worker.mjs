// One thread: reports how many tokens it got, of one key that all take from and of keys that all share.
import { parentPort, workerData } from "node:worker_threads";
import { defineLimits } from "tidegate";
import { shared } from "tidegate/shared";

const { calls, keys, now, run } = workerData;
const store = shared();
const bucket = { kind: "token bucket", rate: 1, period: 1_000_000_000 };
const limits = defineLimits(
  { [`one-${run}`]: { ...bucket, capacity: 1000 }, [`all-${run}`]: { ...bucket, capacity: 10 } },
  { store, now: () => now },
);
let one = 0;
let all = 0;
let both = 0;
for (let i = 0; i < calls; i++) {
  if (limits.limit(`one-${run}`, { key: "hot" }).ok) one++;
  if (limits.limit(`all-${run}`, { key: `k${i % keys}` }).ok) all++;
  const pair = ["left", "right"].map((key) => ({ name: `one-${run}`, key }));
  if (limits.limitAll(i % 2 === 0 ? pair : pair.reverse()).ok) both++;
}
const many = limits.limitMany(`all-${run}`, ["m", "m", "m", "n"]).filter(({ ok }) => ok).length;
parentPort.postMessage({ store: store.name, one, all, both, many });
