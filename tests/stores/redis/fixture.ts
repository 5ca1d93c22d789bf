/** One server for a file of tests: empty, with fresh statistics and a new store for each of them. */
import type { Redis } from "ioredis";
import { beforeAll, beforeEach, onTestFinished } from "vitest";
import { type Call, Limit, type Op } from "tidegate/store";
import { redis, type RedisStore } from "tidegate/redis";
import { RedisServer } from "./server.ts";

export let server: RedisServer;
export let client: Redis;
export let store: RedisStore;

/** Replaces the store for the rest of a test. */
export function replaceStore(other: RedisStore): void {
  store = other;
}

/** Starts the server before the tests of the file that calls this, and stops it after them. */
export function withServer(): void {
  beforeAll(async () => {
    server = await RedisServer.start();
    client = server.client();
    return async () => {
      client.disconnect();
      await server.stop();
    };
  });
  beforeEach(async () => {
    await client.flushall();
    await client.config("RESETSTAT");
    store = redis(client);
  });
}

/** A server for the rest of a test. */
export async function started(...args: string[]): Promise<RedisServer> {
  const own = await RedisServer.start(...args);
  onTestFinished(() => own.stop());
  return own;
}

/** A token comes back in six minutes: none does while a test runs. */
export const limit = new Limit("api", { kind: "token bucket", rate: 10, period: 3_600_000 });
export const callOn = (op: Op, key: string | undefined, count = 1, of = limit, reserve = false): Call => ({
  op,
  limit: of,
  key,
  count,
  reserve,
});
/** Takes as a limiter does: with the denials that the store remembers. */
export const take = async (key: string | undefined, count = 1, of = limit) => {
  const call = callOn("take", key, count, of);
  return store.recall(call, undefined) ?? store.decide(call, undefined);
};

/** How often the server ran a script since the last RESETSTAT. */
export async function scriptCalls(): Promise<number> {
  const stats = await client.info("commandstats");
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}
