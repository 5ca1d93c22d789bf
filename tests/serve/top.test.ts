/** `tidegate top`, on the stores of running services and apps. */
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { defineLimits } from "tidegate";
import type { PolicyDocument } from "tidegate/policies";
import { postgres } from "tidegate/postgres";
import { redis as redisStore } from "tidegate/redis";
import { expect, test } from "vitest";
import { startServer } from "../stores/postgres/server.ts";
import { RedisServer } from "../stores/redis/server.ts";
import { Program } from "../support/processes.ts";
import { BIN, tidegate } from "./cli.ts";
import { NUMBERS, PATIENT, root, type Served, serving } from "./service.ts";

const POLICIES: PolicyDocument = {
  rules: [
    { name: "api", limit_keys: ["ip:address"], ...NUMBERS },
    { name: "both", limit_keys: ["header:x-tenant", "header:x-user"], ...NUMBERS },
    {
      name: "plans",
      limit_keys: ["header:x-key"],
      ...NUMBERS,
      tiers: { by: "header:x-plan", settings: { pro: { rate: 9, period: "1m" } } },
    },
    { name: "all", limit_keys: [], ...NUMBERS },
  ],
};
const CONFIG = { kind: "token bucket", rate: 1, period: "1h", capacity: 3 } as const;
const ONE = ["--rate", "1", "--period", "1h", "--capacity", "3"];

async function listed(...args: string[]) {
  const { code, out, err } = await tidegate(["top", ...args, "--json"]);
  const [first = ""] = args;
  const left = first.startsWith("--")
    ? "tidegate: plans has tiers, so it is not listed: name it, and its --tier\n"
    : "";
  const note =
    first === "plans" ? "tidegate: plans has tiers (pro): for a key of one of them, give its --tier\n" : left;
  expect([code, err], args.join(" ")).toEqual([0, note]);
  // A terminal would obey some, and others turn text.
  expect(out).not.toMatch(/[\u007f-\u009f\u202e]/);
  return JSON.parse(out);
}

/** Limits some keys of a service, and lists them. */
async function lists(service: Served, url: string): Promise<void> {
  const on = ["--store", url, "--policy", service.policies];
  expect(await listed(...on)).toMatchObject({ count: 1, keys: 0, denied: 0, rows: [] });
  const decide = async (name: string, count: number, key?: unknown) =>
    (await service.post("/v1/decide", { name, count, key })).body;
  await decide("api", 1, "203.0.113.1");
  await decide("api", 3, "203.0.113.2");
  await decide("all", 2);
  await decide("plans", 3, "k");
  expect((await tidegate(["block", "api", "203.0.113.3", "--for", "15h", ...on])).code).toBe(0);
  expect((await tidegate(["charge", "both", "--key", '["acme",null]', "--count", "5", ...on])).code).toBe(0);
  const denied = await decide("api", 1, "203.0.113.2");

  const { rows, ...list } = await listed(...on);
  expect(list).toEqual({ now: expect.any(Number), count: 1, keys: 5, denied: 3 });
  expect(rows.map(({ name, key, ok }: { name: string; key?: string; ok: boolean }) => [name, key, ok])).toEqual([
    ["api", "203.0.113.3", false],
    ["both", '["acme",null]', false],
    ["api", "203.0.113.2", false],
    ["all", undefined, true],
    ["api", "203.0.113.1", true],
  ]);
  expect(rows[0]).toMatchObject({ limit: 3, retryAfter: expect.closeTo(54_000_000, -6) });
  expect(rows[2]).toMatchObject({ retryAt: denied.retryAt });
  // Where a call is granted too, the tokens are those of now, not those that it would leave.
  expect(rows[3].value).toBeCloseTo(1, 0);
  expect(rows[4].value).toBeCloseTo(2, 0);
  // What is listed as denied is what the command of one key reports.
  const one = JSON.parse((await tidegate(["get", "api", "203.0.113.3", "--json", ...on])).out);
  expect([rows[0].retryAt, rows[0].resetAt]).toEqual([one.retryAt, one.resetAt]);

  expect((await listed("api", "--rows", "1", ...on)).rows).toMatchObject([{ key: "203.0.113.3" }]);
  expect(await listed("all", "--count", "3", ...on)).toMatchObject({ keys: 1, denied: 1 });
  expect((await listed("all", "--count", "4", ...on)).rows).toMatchObject([{ ok: false, value: expect.closeTo(1, 0) }]);
  expect((await listed("plans", ...on)).rows).toMatchObject([{ name: "plans", key: "k", ok: false }]);
  const { code, out } = await tidegate(["top", "both", ...on]);
  expect([code, out.replace(/^limit.*\n/m, "")]).toEqual([
    0,
    expect.stringMatching(
      /^[\dT:.-]+Z {2}1 of 1 keys are denied a call for 1 token\n\nboth {3}\["acme",null\] {2}-[\d.]+ of 3 {2}\d h( \d+ min)?\n$/,
    ),
  ]);
}

test("redis: lists the keys of a service by ioredis, and by redis 5 and 4", async () => {
  await using redis = await RedisServer.start();
  const url = redis.url;
  await using service = await serving(POLICIES, ["--store", url, ...PATIENT]);
  await lists(service, url);
  const on = ["--store", url, "--policy", service.policies];
  const keysOf = ({ rows }: { rows: readonly { key?: string }[] }) => rows.map(({ key }) => key);
  const keys = keysOf(await listed(...on));
  for (const client of ["redis", "redis-4"]) {
    const project = join(service.folder, client);
    mkdirSync(join(project, "node_modules"), { recursive: true });
    symlinkSync(join(root, "node_modules", client), join(project, "node_modules/redis"));
    const { code, out, err } = await tidegate(["top", "--json", ...on], project);
    expect([code, err], client).toEqual([0, expect.stringContaining("plans has tiers")]);
    const list = JSON.parse(out);
    expect([list.keys, list.denied, keysOf(list)], client).toEqual([5, 3, keys]);
  }
});

test("redis: lists thousands of keys, of any characters and under another prefix, and skips values that are no state", async () => {
  await using redis = await RedisServer.start();
  const url = redis.url;
  const client = new Redis(url);
  const prefix = "a*p[p]?-\\:";
  const limits = defineLimits(
    { api: CONFIG, apis: CONFIG },
    { store: redisStore(client, { prefix }), timeout: 60_000 },
  );
  const odd = ["a{b}c", "x:y/z;w", "\ud800", "\u001b[2J", "\u009b2J\u202e", "😀".repeat(60)];
  for (const [i, key] of odd.entries()) await limits.charge("api", { key, count: 10 + i });
  await Promise.all(Array.from({ length: 5000 }, (_, i) => limits.limit("api", { key: `key-${i}` })));
  await limits.limit("apis", { key: "another limit" });
  await defineLimits({ api: CONFIG }, { store: redisStore(client), timeout: 60_000 }).limit("api", {
    key: "elsewhere",
  });
  await client.set(`${prefix}api:junk`, "junk");
  await client.set(`${prefix}api:not-finite`, Buffer.alloc(16, 0xff));
  await client.lpush(`${prefix}api:list`, "1");
  const on = ["--store", url, "--prefix", prefix, ...ONE];
  const { keys, denied, rows } = await listed("api", "--rows", "7", ...on);
  expect([keys, denied]).toEqual([5006, 6]);
  expect(rows.slice(0, 6).map(({ key }: { key: string }) => key)).toEqual(odd.toReversed());
  const { retryAt } = await limits.check("api", { key: odd[5] as string });
  expect(rows[0].retryAt).toBe(retryAt);
  const { out } = await tidegate(["top", "api", "--rows", "6", ...on]);
  expect(out).toContain(`api    ${"😀".repeat(47)}…  `);
  expect(out).toContain("api    \\u001b[2J  ");
  await client.quit();
});

test("redis: on a terminal it lists again until Ctrl-C; a server that stops is an error", async () => {
  await using redis = await RedisServer.start();
  const command = [process.execPath, BIN, "top", "api", "--every", "100ms", ...ONE];
  const url = redis.url;
  // A terminal of its own, by the program of util-linux.
  const args = ["-qefc", [...command, "--store", url].join(" "), "/dev/null"];
  const program = new Program("script", args, { cwd: root, stdio: "pipe" });
  const shows = (pattern: RegExp) => program.until((output) => pattern.exec(output.replaceAll("\u001b", "<ESC>")));
  await shows(/0 of 0 keys/);
  expect((await tidegate(["charge", "api", "ann", "--count", "9", "--store", url, ...ONE])).code).toBe(0);
  await shows(/<ESC>\[H\S+ {2}1 of 1 keys are denied a call for 1 token<ESC>\[K\r\n[\s\S]*ann {2}-[56][\d.]* of 3/);
  await redis.stop();
  await shows(/tidegate: redis: .* failed/);
  expect(await program.ended).toBe(1);
});

test("postgres: lists the keys of a service in pages, and none that is full or holds no state", async () => {
  await using server = await startServer({ fsync: "off" });
  const url = `postgres://postgres@127.0.0.1:${server.port}/postgres`;
  await using service = await serving(POLICIES, ["--store", url, "--migrate", ...PATIENT]);
  await lists(service, url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const insert = "INSERT INTO tidegate.states (id, value, ts, full_at) ";
  await client.query(`${insert} SELECT convert_to('other:key-' || i, 'UTF8'), -i, tidegate.clock(), 'Infinity'
    FROM generate_series(1, 12345) AS i`);
  await client.query(`${insert} VALUES ('other:bad', 'NaN', 0, 'Infinity'), ('other:full', 3, 0, 1)`);
  const limits = defineLimits({ other: CONFIG }, { store: postgres(client), timeout: 60_000 });
  await limits.charge("other", { key: "\ud800", count: 2e6 });
  await limits.charge("other", { key: "x:y\n", count: 1e6 });
  const { keys, denied, rows } = await listed("other", "--rows", "3", "--store", url, ...ONE);
  expect([keys, denied]).toEqual([12_347, 12_347]);
  expect(rows.slice(1).map(({ key }: { key: string }) => key)).toEqual(["x:y\n", "key-12345"]);
  await client.end();
  await server.stop();
  const down = await tidegate(["top", "other", "--store", url, ...ONE]);
  expect([down.code, down.out]).toEqual([1, ""]);
  expect(down.err).toMatch(/^tidegate: postgres: connect of .*ECONNREFUSED.*\n$/);
});
