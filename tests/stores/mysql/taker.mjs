// Takes single tokens of one key, four callers at a time, and prints how many it got:
// node taker.mjs <client> <uri> <calls> <one | all>
import { defineLimits } from "tidegate";
import { mysql } from "tidegate/mysql";

const [name, uri, calls, kind] = process.argv.slice(2);
const { hostname: host, port, username: user, pathname } = new URL(uri);
const { createPool } = await import(name);
const pool = createPool({ host, port: Number(port), user, database: pathname.slice(1) });
const bucket = { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 300 };
const limits = defineLimits(
  { stock: bucket, also: { ...bucket, capacity: 200 } },
  { store: mysql(pool, { table: kind }), timeout: 60_000, log: false },
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
await pool.end();
