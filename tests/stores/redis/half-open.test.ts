/** A connection that is open on this side alone, as after a failover without a FIN: the settings that the guide names. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { expect, onTestFinished, test, vi } from "vitest";
import { defineLimits } from "tidegate";
import { redis } from "tidegate/redis";
import type { Open } from "./clients.ts";
import { LossyProxy } from "../../support/proxy.ts";
import { RedisServer } from "./server.ts";

const clients: Readonly<Record<string, (port: number) => Promise<Open>>> = {
  ioredis: async (port) => {
    const client = new Redis({ host: "127.0.0.1", port, socketTimeout: 1000 });
    client.on("error", () => {});
    return { client, close: () => client.disconnect() };
  },
  "node-redis": async (port) => {
    const reconnectStrategy = (retries: number) => Math.min(50 * 2 ** retries, 2000);
    const client = createClient({ socket: { host: "127.0.0.1", port, socketTimeout: 1000, reconnectStrategy } });
    client.on("error", () => {});
    await client.connect();
    return { client, close: () => client.destroy() };
  },
};

test.each(Object.entries(clients))("%s recovers from a half-open connection by its socket timeout", async (_, make) => {
  const server = await RedisServer.start();
  onTestFinished(() => server.stop());
  const proxy = await LossyProxy.start(server.port);
  onTestFinished(() => proxy.stop());
  const { client, close } = await make(proxy.port);
  onTestFinished(close);
  const limits = { api: { kind: "token bucket", rate: 100, period: 2 ** 40 } } as const;
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const store = redis(client);
  const limiter = defineLimits(limits, { store, log: { error: write, info: write } });
  // For calls that are not late, however slow the machine.
  const patient = defineLimits(limits, { store, timeout: 60_000, log: false });
  expect((await patient.limit("api")).ok).toBe(true);
  proxy.stall();
  expect((await limiter.limit("api")).degraded).toBe(true);
  await vi.waitUntil(async () => !(await limiter.check("api")).degraded, { timeout: 30_000, interval: 50 });
  expect(Math.round((await patient.getValue("api")).value)).toBe(99);
  expect(lines).toEqual([
    expect.stringMatching(/no answer within 250 ms; .* set the socket timeouts of the client$/),
    "tidegate: redis answers again",
  ]);
});
