// One process with leases: asks so often for tokens of one key, gives back what it has left, and says what it got.
import { Redis } from "ioredis";
import { defineLimits } from "tidegate";
import { redis } from "tidegate/redis";

const [port, capacity, asks] = process.argv.slice(2).map(Number);
const client = new Redis({ host: "127.0.0.1", port });
const limits = defineLimits(
  // It does not refill while this runs: what is granted is what there was.
  { hot: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity } },
  { store: redis(client, { lease: true }), timeout: 60_000 },
);
let granted = 0;
for (let i = 0; i < asks; i++) {
  const { ok, cause } = await limits.limit("hot", { key: "everybody's" });
  if (cause !== undefined) throw cause;
  if (ok) granted++;
}
await limits.release();
client.disconnect();
console.log(granted);
