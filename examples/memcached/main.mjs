// Limits searches in Memcached, for all processes on one server (MEMCACHED chooses which):
//   node examples/memcached/main.mjs
import Memcached from "memcached";
import { defineLimits, MINUTE, SECOND } from "tidegate";
import { memcached } from "tidegate/memcached";

const server = process.env.MEMCACHED ?? "localhost:11211";
// By default the client does not use a server that failed for 30 s, and after five failures for 5 h.
const client = new Memcached(server, { retry: 1000, failures: 1e6 });
const limits = defineLimits(
  { search: { kind: "token bucket", rate: 2, period: MINUTE } },
  { store: memcached(client), onStoreError: "allow", timeout: 2 * SECOND },
);

for (const query of ["tide", "gate", "weir"]) {
  const { ok, remaining } = await limits.limit("search", { key: "user 7" });
  console.log(query, ok ? `found, ${remaining} left` : "slow down");
}
client.end();
