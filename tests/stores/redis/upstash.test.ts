/** Upstash's own client and Vercel's, over REST, on a real Redis; and the migration page's code. */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Redis as Upstash } from "@upstash/redis";
import { createClient as createKv } from "@vercel/kv";
import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import { redis, type RestRedisLike } from "tidegate/redis";
import { storeSuite } from "tidegate/testing";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { client, server, withServer } from "./fixture.ts";
import { RestServer } from "./rest.ts";

withServer();
let rest: RestServer;
beforeAll(async () => {
  rest = await RestServer.start(server.port);
  return () => rest.stop();
});
beforeEach(async () => {
  await client.script("FLUSH");
  rest.commands.length = 0;
});

const limits = { api: { kind: "token bucket", rate: 10, period: HOUR } } as const;

/** Clients that bring all defaults of their own but these. */
const clients: Readonly<Record<string, () => RestRedisLike>> = {
  "@upstash/redis": () => new Upstash({ url: rest.url, token: "secret" }),
  "@upstash/redis without auto-pipelining": () =>
    new Upstash({ url: rest.url, token: "secret", enableAutoPipelining: false }),
  "@vercel/kv": () => createKv({ url: rest.url, token: "secret" }),
};

describe("the contract of a store, through @upstash/redis", () => {
  const connect = clients["@upstash/redis"] as () => RestRedisLike;
  const create = async () => redis(connect(), { rememberDenials: 0 });
  storeSuite({ test, describe, create, corrupt: () => (id) => client.set(`tidegate:${id}`, "garbage") });
});

describe.each(Object.entries(clients))("%s", (_, connect) => {
  const create = () => redis(connect(), { rememberDenials: 0 });

  test("sends the script whole where the server does not have it, and again after SCRIPT FLUSH", async () => {
    const limiter = defineLimits(limits, { store: create(), timeout: 60_000 });
    for (let round = 1; round <= 2; round++) {
      const calls = Array.from({ length: 20 }, (_, i) => limiter.limit("api", { key: `${i % 4}` }));
      const answers = await Promise.all(calls);
      expect(answers.map(({ cause }) => cause).filter((cause) => cause !== undefined)).toEqual([]);
      expect(answers.every(({ ok }) => ok)).toBe(true);
      expect(rest.count("eval"), `whole scripts after ${round} rounds`).toBe(round);
      expect((await limiter.getValue("api", { key: "1" })).value).toBeCloseTo(10 - 5 * round, 0);
      await client.script("FLUSH");
    }
  });

  test("sends nothing a second time where a reply is lost", async () => {
    const limiter = defineLimits(limits, { store: create(), timeout: 60_000, onStoreError: "deny" });
    expect(await limiter.limit("api", { key: "lost" })).toMatchObject({ ok: true, remaining: 9 });
    rest.repliesToLose = 1;
    const { degraded, cause } = await limiter.limit("api", { key: "lost" });
    expect({ degraded, message: (cause as Error).message }).toEqual({
      degraded: true,
      message: 'redis: take of "api:lost" failed: fetch failed: other side closed',
    });
    expect((await limiter.getValue("api", { key: "lost" })).value).toBeCloseTo(8, 0);
  });

  test("sends 64 concurrent calls in one request, and 3000 in three", async () => {
    const limiter = defineLimits(limits, { store: create(), timeout: 60_000 });
    await limiter.limit("api");
    const granted = async (calls: number, keys: number) => {
      const before = rest.requests;
      const all = Array.from({ length: calls }, (_, i) => limiter.limit("api", { key: `${i % keys}` }));
      return { granted: (await Promise.all(all)).filter(({ ok }) => ok).length, requests: rest.requests - before };
    };
    expect(await granted(64, 64)).toEqual({ granted: 64, requests: 1 });
    expect(await granted(3000, 300)).toEqual({ granted: 64 * 9 + 236 * 10, requests: 3 });
  });

  test("sends nothing a second time where an error merely quotes the word", async () => {
    const limiter = defineLimits(limits, { store: create(), timeout: 60_000 });
    expect((await limiter.limit("api")).ok).toBe(true);
    await client.config("SET", "maxmemory", "1");
    rest.commands.length = 0;
    try {
      for (const key of ["NOSCRIPT", "Command failed: NOSCRIPT No matching script", '", NOSCRIPT No matching script']) {
        const { cause } = await limiter.limit("api", { key });
        expect((cause as Error).message).toMatch(/OOM/);
      }
    } finally {
      await client.config("SET", "maxmemory", "0");
    }
    expect([rest.count("evalsha"), rest.count("eval")]).toEqual([3, 0]);
  });
});

test("an error of the REST server is reported without the script", async () => {
  const wrong = new Upstash({ url: rest.url, token: "wrong" });
  const { cause } = await defineLimits(limits, { store: redis(wrong), timeout: 60_000 }).limit("api");
  expect((cause as Error).message).toBe('redis: take of "api" failed: WRONGPASS');
});

test("where one error is the reply to all commands of a request, it is the calls' error", async () => {
  vi.stubGlobal("fetch", async () => new Response('{"error":"ERR max daily request limit exceeded"}'));
  try {
    const store = redis(new Upstash({ url: rest.url, token: "secret" }));
    const { cause } = await defineLimits(limits, { store, log: false }).limit("api");
    expect((cause as Error).message).toBe('redis: take of "api" failed: ERR max daily request limit exceeded');
  } finally {
    vi.unstubAllGlobals();
  }
});

test("a client without an address fails its calls with that reason, not by their deadline", async () => {
  const nowhere = new Upstash({ url: "", token: "" });
  const { cause } = await defineLimits(limits, { store: redis(nowhere), timeout: 60_000 }).limit("api");
  expect((cause as Error).message).toMatch(/Failed to parse URL/);
});

/** Runs the page's code as it is, on this server. */
async function page(): Promise<(request: Request) => Promise<Response>> {
  const text = readFileSync(new URL("../../../npm/site/migrate/upstash.md", import.meta.url), "utf8");
  const code = /## After[\s\S]*?```ts\n([\s\S]*?)```/.exec(text)?.[1] ?? "";
  const source = (path: string) => fileURLToPath(new URL(`../../../npm/tidegate/src/${path}.ts`, import.meta.url));
  const modules: Readonly<Record<string, string>> = {
    "@upstash/redis": createRequire(import.meta.url).resolve("@upstash/redis"),
    tidegate: source("index"),
    "tidegate/http": source("http/index"),
    "tidegate/redis": source("stores/redis"),
  };
  const local = code
    .replaceAll(/from "([^"]+)"/g, (_, name: string) => `from ${JSON.stringify(modules[name])}`)
    .replace("https://example.upstash.io", rest.url);
  const folder = temporaryFolder("upstash-page");
  try {
    const file = join(folder, "page.ts");
    writeFileSync(file, local);
    return (await import(/* @vite-ignore */ pathToFileURL(file).href)).POST;
  } finally {
    remove(folder);
  }
}

test("the migration page's code grants exactly the capacity, to parallel calls and after SCRIPT FLUSH", async () => {
  const POST = await page();
  const send = (user: string) =>
    POST(new Request("http://localhost/", { method: "POST", headers: { "x-user": user } }));
  const statuses = async (user: string) =>
    (await Promise.all(Array.from({ length: 9 }, () => send(user)))).map(({ status }) => status).sort();
  expect(await statuses("ada")).toEqual([...Array(6).fill(200), ...Array(3).fill(429)]);
  await client.script("FLUSH");
  expect(await Promise.all(["bob", "eve", "kim"].map((user) => statuses(user)))).toEqual(
    Array(3).fill([...Array(6).fill(200), ...Array(3).fill(429)]),
  );
});
