/** The settings against half-open connections that the guide names. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { expect, onTestFinished, test } from "vitest";
import { redis } from "tidegate/redis";
import type { Open } from "./clients.ts";
import { LossyProxy } from "../../support/proxy.ts";
import { stallUntilRecovered } from "../half-open.ts";
import { started } from "./fixture.ts";

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
  const server = await started();
  const proxy = await LossyProxy.start(server.port);
  onTestFinished(() => proxy.stop());
  const { client, close } = await make(proxy.port);
  onTestFinished(close);
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  await stallUntilRecovered(redis(client), proxy, { error: write, info: write });
  expect(lines).toEqual([
    expect.stringMatching(/no answer within 250 ms; .* half-open: set its socket timeouts$/),
    "tidegate: redis answers again",
  ]);
});
