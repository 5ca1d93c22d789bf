// node serializable.mjs [--quick] [--rounds 3] [--json figures.json]
//
// Eight pools of one connection on three keys, with SERIALIZABLE and READ COMMITTED as their default in turns: how many
// calls the limiter decides without the store. First one call a ms from each pool, then 800 from each at the same time.
// With the limiter's default timeout; with `--timeout 2000` a loaded machine decides less of the result.
import pg from "pg";
import { defineLimits } from "tidegate";
import { migrate, postgres } from "tidegate/postgres";
import { figure, median, options, publish } from "../tables.mjs";
import { startServer } from "./server.mjs";

const given = options(3, { timeout: { type: "string" } });
const timeout = Number(given.timeout ?? 250);
const ms = given.quick ? 500 : 10_000;
const POOLS = 8;
const AT_ONCE = 800;
const pause = () => new Promise((resolve) => setTimeout(resolve, 1));

const server = await startServer();
process.on("exit", () => server.stop());
const config = { kind: "token bucket", rate: 1e9, period: 1000 };
const pools = [];
const nodesAt = (isolation) =>
  Array.from({ length: POOLS }, () => {
    const options = `-c default_transaction_isolation=${isolation}`;
    const pool = new pg.Pool({ ...server.options, options, max: 1 });
    pools.push(pool);
    const store = postgres(pool, { statementTimeout: Math.max(1000, timeout) });
    return { pool, limits: defineLimits({ api: config }, { store, timeout }) };
  });
const levels = { SERIALIZABLE: nodesAt("serializable"), "READ COMMITTED": nodesAt("read\\ committed") };
await migrate(pools[0]);

const seen = { calls: 0, degraded: 0, waits: [], causes: new Map() };
async function call(node, i) {
  const before = performance.now();
  const decision = await node.limits.limit("api", { key: `k${i % 3}` });
  seen.waits.push(performance.now() - before);
  seen.calls++;
  if (!decision.degraded) return;
  seen.degraded++;
  const cause = String(decision.cause?.message ?? decision.cause);
  seen.causes.set(cause, (seen.causes.get(cause) ?? 0) + 1);
}
async function steady(nodes) {
  const until = performance.now() + ms;
  const run = async (node) => {
    const out = [];
    for (let i = 0; performance.now() < until; i++) {
      out.push(call(node, i));
      await pause();
    }
    await Promise.all(out);
  };
  await Promise.all(nodes.map(run));
}
const atOnce = (nodes) =>
  Promise.all(nodes.flatMap((node) => Array.from({ length: AT_ONCE }, (_, i) => call(node, i))));

const tables = [];
for (const [title, run] of [
  [`a call a ms from each of ${POOLS} sessions, for ${ms} ms`, steady],
  [`${AT_ONCE} calls at once from each of ${POOLS} sessions`, atOnce],
]) {
  const rows = [];
  for (let round = 0; round < given.rounds; round++) {
    for (const [level, nodes] of Object.entries(levels)) {
      Object.assign(seen, { calls: 0, degraded: 0, waits: [], causes: new Map() });
      await run(nodes);
      const [cause = ["", 0]] = [...seen.causes].sort((a, b) => b[1] - a[1]);
      rows.push([level, figure(seen.calls), figure(seen.degraded), figure(median(seen.waits), 1), cause[0]]);
    }
  }
  tables.push({ title, head: ["", "calls", "without the store", "p50, ms", "most common cause"], rows });
}
publish(given, tables);
await Promise.all(pools.map((pool) => pool.end()));
