// Takes single tokens of one key, four callers at a time, and prints how many it got:
// node taker.mjs <client> <file> <calls> <one | all>
import { defineLimits } from "tidegate";
import { sqlite } from "tidegate/sqlite";
import { clients } from "./clients.mjs";

const [name, path, calls, kind] = process.argv.slice(2);
const { client, close } = await clients[name](path);
const bucket = { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 300 };
const limits = defineLimits(
  { stock: bucket, also: { ...bucket, capacity: 200 } },
  { store: sqlite(client), timeout: 60_000, log: false },
);
const both = [
  { name: "stock", key: "hot" },
  { name: "also", key: "hot" },
];
let granted = 0;
const caller = async () => {
  for (let i = 0; i < Number(calls) / 4; i++) {
    const decision = kind === "all" ? await limits.limitAll(both) : await limits.limit("stock", { key: "hot" });
    if (decision.degraded === true) throw decision.cause;
    if (decision.ok) granted++;
  }
};
await Promise.all([1, 2, 3, 4].map(caller));
console.log(granted);
await close();
