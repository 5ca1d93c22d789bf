// Takes single tokens of one key, four callers at a time, and prints how many it was granted:
// node taker.mjs <url> <calls>
import { MongoClient } from "mongodb";
import { defineLimits } from "tidegate";
import { mongodb } from "tidegate/mongodb";

const [url, calls] = process.argv.slice(2);
const client = new MongoClient(url);
const limits = defineLimits(
  { stock: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 300 } },
  { store: mongodb(client, { database: "limits", collection: "processes" }), timeout: 60_000, log: false },
);
let granted = 0;
const caller = async () => {
  for (let i = 0; i < Number(calls) / 4; i++) {
    const decision = await limits.limit("stock", { key: "hot" });
    if (decision.degraded === true) throw decision.cause;
    if (decision.ok) granted++;
  }
};
await Promise.all([1, 2, 3, 4].map(caller));
console.log(granted);
await client.close();
