// Takes single tokens of one key, all at once, and prints how many it got:
// node taker.mjs <address> <client> <calls>
import { MemcacheClient } from "memcache-client";
import Memcached from "memcached";
import { defineLimits } from "tidegate";
import { memcached } from "tidegate/memcached";

const [address, which, calls] = process.argv.slice(2);
const client = which === "memcached" ? new Memcached(address) : new MemcacheClient({ server: address });
const limits = defineLimits(
  { stock: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 300 } },
  { store: memcached(client, { stepTimeout: 60_000 }), timeout: 60_000 },
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
process.exit(0);
