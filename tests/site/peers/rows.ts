/** Statements about other limiters: each row of their pages is a test, on the real package beside ours. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isInputError } from "../../../npm/tidegate/src/index.ts";
import { isInstalled, root } from "../../readme/blocks.ts";
import { RedisServer } from "../../stores/redis/server.ts";

export const noRedis: boolean = !isInstalled("redis-server");
if (noRedis) console.warn("!!! WHAT OTHERS DO ON REDIS IS NOT TESTED: apt-get install redis-server");

/** The rows under "What changes in behaviour" of a page. */
export function rows(page: string): string[] {
  const text = readFileSync(join(root, `npm/site/migrate/${page}.md`), "utf8");
  const [, section = ""] = text.split("## What changes in behaviour");
  const [table = ""] = /^\|[\s\S]*?\n\n/m.exec(`${section}\n\n`) ?? [];
  return [...table.matchAll(/^\| ([^|]+?) \|.*\|.*\|$/gm)].map(([, name = ""]) => name);
}

/** One test for each row, and no row without one. */
export function suite(page: string, tests: Readonly<Record<string, () => unknown>>): void {
  test("has a test for each row", () => expect(Object.keys(tests)).toEqual(rows(page)));
  for (const [name, run] of Object.entries(tests)) test(name, run as () => Promise<void>);
}

/** Whether a call is refused as a mistake. */
export const refused = (call: () => unknown): boolean => {
  try {
    call();
    return false;
  } catch (error) {
    return isInputError(error);
  }
};

/** A client of a Redis server that runs during this file's tests. */
export function onRedis(): () => Redis {
  let server: RedisServer | undefined;
  let client: Redis | undefined;
  beforeAll(async () => {
    if (noRedis) return;
    server = await RedisServer.start();
    client = new Redis(server.port, "127.0.0.1");
  });
  afterAll(async () => {
    client?.disconnect();
    await server?.stop();
  });
  return () => client as Redis;
}
