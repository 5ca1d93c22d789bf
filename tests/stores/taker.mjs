// Takes single tokens of one key, four callers at a time, and prints how many it was granted:
// node taker.mjs <store> <client> <address> <table> <calls> <limit | limitAll>
import { defineLimits } from "tidegate";

/** Opens a store through this client, with what closes it. */
const stores = {
  async sqlite(name, path, table) {
    const { sqlite } = await import("tidegate/sqlite");
    const { clients } = await import("./sqlite/clients.mjs");
    const { client, close } = await clients[name](path);
    return { store: sqlite(client, { table }), close };
  },
  async mysql(name, address, table) {
    const { mysql } = await import("tidegate/mysql");
    const { createPool } = await import(name);
    const { hostname: host, port, username: user, pathname } = new URL(address);
    const pool = createPool({ host, port: Number(port), user, database: pathname.slice(1) });
    return { store: mysql(pool, { table }), close: () => pool.end() };
  },
  async dynamodb(name, endpoint, table) {
    const { dynamodb } = await import("tidegate/dynamodb");
    const { DynamoDB } = await import(name);
    const credentials = { accessKeyId: "local", secretAccessKey: "local" };
    const client = new DynamoDB({ endpoint, region: "us-east-1", credentials });
    return { store: dynamodb(client, { table }), close: () => client.destroy() };
  },
  async mongodb(name, url, collection) {
    const { mongodb } = await import("tidegate/mongodb");
    const { MongoClient } = await import(name);
    const client = new MongoClient(url);
    return { store: mongodb(client, { database: "limits", collection }), close: () => client.close() };
  },
  async memcached(name, address, prefix) {
    const { memcached } = await import("tidegate/memcached");
    const { MemcacheClient, default: Memcached } = await import(name);
    const client = name === "memcached" ? new Memcached(address) : new MemcacheClient({ server: address });
    return { store: memcached(client, { prefix, stepTimeout: 60_000 }), close: () => process.exit(0) };
  },
};

const [kind, client, address, table, calls, operation] = process.argv.slice(2);
const { store, close } = await stores[kind](client, address, table);
const bucket = { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 300 };
const limits = defineLimits(
  { stock: bucket, also: { ...bucket, capacity: 200 } },
  { store, timeout: 60_000, log: false },
);
const both = [
  { name: "stock", key: "hot" },
  { name: "also", key: "hot" },
];
let granted = 0;
const caller = async () => {
  for (let i = 0; i < Number(calls) / 4; i++) {
    const decision = await (operation === "limitAll" ? limits.limitAll(both) : limits.limit("stock", { key: "hot" }));
    if (decision.degraded === true) throw decision.cause;
    if (decision.ok) granted++;
  }
};
await Promise.all([1, 2, 3, 4].map(caller));
console.log(granted);
await close();
