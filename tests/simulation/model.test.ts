/** The model of a Redis server passes the store suite, and all vectors. */
import { createHash } from "node:crypto";
import { afterAll, describe, test } from "vitest";
import { type RedisLike, redis } from "tidegate/redis";
import { storeSuite } from "tidegate/testing";
import { vectors } from "../stores/vectors.ts";
import { RedisServer } from "./engine/lua.ts";

const open: RedisServer[] = [];
afterAll(() => {
  for (const server of open) server.close();
});

/** A client without a network, by this computer's clock. */
async function client(): Promise<RedisLike> {
  const server = await RedisServer.start();
  open.push(server);
  const run = (sha: string, keys: string[], args: string[]): Uint8Array => server.run(sha, keys, args, Date.now())[0];
  return {
    options: {},
    sendCommand: () => {},
    evalshaBuffer: async (sha: string, _many: number, keys: string[], args: string[]) => {
      if (!server.has(sha)) throw new Error("NOSCRIPT No matching script. Please use EVAL.");
      return run(sha, keys, args);
    },
    evalBuffer: async (script: string, _many: number, keys: string[], args: string[]) => {
      const sha = createHash("sha1").update(script).digest("hex");
      server.install(sha, script);
      return run(sha, keys, args);
    },
  } as unknown as RedisLike;
}

describe("the script in the model of a server", () => {
  storeSuite({
    test,
    describe,
    vectors,
    create: async () => redis(await client()),
  });
});
