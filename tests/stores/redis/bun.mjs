// Runs the contract of a store in Bun, on its own client: argument 1 is the server's port, argument 2 a file of vectors.
import { readFileSync } from "node:fs";
import { defineLimits } from "tidegate";
import { redis } from "tidegate/redis";
import { report } from "../../hosts/program/report.js";

const [, , port, file] = process.argv;
const url = `redis://127.0.0.1:${port}`;
const client = new Bun.RedisClient(url);
// The first call is made before the client is connected.
const limits = defineLimits(
  { api: { kind: "token bucket", rate: 10, period: 2 ** 40 } },
  { store: redis(client), timeout: 60_000 },
);
const [first, ...rest] = await Promise.all(Array.from({ length: 12 }, () => limits.limit("api", { key: "é" })));
const granted = [first, ...rest].filter(({ ok }) => ok).length;
await client.send("SCRIPT", ["FLUSH"]);
const afterFlush = await limits.check("api", { key: "other" });
const suite = await report({
  create: async () => {
    await client.send("FLUSHALL", []);
    return redis(client);
  },
  vectors: JSON.parse(readFileSync(file, "utf8")),
});
console.log(
  JSON.stringify({ bun: Bun.version, granted, cause: first.cause?.message, afterFlush: afterFlush.ok, suite }),
);
client.close();
