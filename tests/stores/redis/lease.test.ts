/** Leases on a real server: several processes on one key, and several clients of one process. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type Config, defineLimits } from "tidegate";
import { redis } from "tidegate/redis";
import { client, scriptCalls, server, withServer } from "./fixture.ts";

const NODE = fileURLToPath(new URL("./lease-node.mjs", import.meta.url));
const timeout = 60_000;
const stock = (capacity: number): Config => ({ kind: "token bucket", rate: 1, period: 2 ** 40, capacity });

withServer();

test("processes on one key grant exactly the capacity, to the last token, and one call in a hundred reaches the server", async () => {
  const [capacity, asks, processes] = [30_000, 20_000, 3];
  const run = promisify(execFile);
  const outputs = await Promise.all(
    Array.from({ length: processes }, () => run(process.execPath, [NODE, `${server.port}`, `${capacity}`, `${asks}`])),
  );
  const calls = await scriptCalls();
  const granted = outputs.reduce((sum, { stdout }) => sum + Number(stdout), 0);
  const limits = defineLimits({ hot: stock(capacity) }, { store: redis(client), timeout });
  const { value } = await limits.getValue("hot", { key: "everybody's" });
  expect(granted).toBeLessThanOrEqual(capacity);
  expect(Math.floor(granted + value)).toBe(capacity);
  expect(calls).toBeLessThan((processes * asks) / 100);
});

test("concurrent callers of several clients are granted exactly the capacity of each key", async () => {
  const clients = Array.from({ length: 3 }, () => server.client());
  const nodes = clients.map((own) =>
    defineLimits({ hot: stock(3000) }, { store: redis(own, { lease: { ahead: 50 } }), timeout }),
  );
  const got: Record<string, number> = { a: 0, b: 0 };
  const caller = async (node: (typeof nodes)[number], key: string): Promise<void> => {
    for (let i = 0; i < 200; i++) if ((await node.limit("hot", { key })).ok) got[key] = (got[key] ?? 0) + 1;
  };
  await Promise.all(
    nodes.flatMap((node) => Array.from({ length: 20 }, (_, i) => caller(node, i % 2 === 0 ? "a" : "b"))),
  );
  await Promise.all(nodes.map((node) => node.release()));
  const plain = defineLimits({ hot: stock(3000) }, { store: redis(client), timeout });
  for (const key of ["a", "b"]) {
    const { value } = await plain.getValue("hot", { key });
    expect(Math.floor((got[key] as number) + value)).toBe(3000);
  }
  for (const own of clients) own.disconnect();
});
