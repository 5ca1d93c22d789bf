/** `tidegate get`, `reset`, `give`, `charge`, `block` and `unblock`, on the stores of running services. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import type { PolicyDocument } from "tidegate/policies";
import { describe, expect, test } from "vitest";
import { startServer } from "../stores/postgres/server.ts";
import { RedisServer } from "../stores/redis/server.ts";
import { BIN, ended, PIPES, tidegate } from "./cli.ts";
import { NUMBERS, PATIENT, root, type Served, serving } from "./service.ts";

const POLICIES: PolicyDocument = {
  rules: [
    { name: "api", limit_keys: ["ip:address"], ...NUMBERS },
    {
      name: "plans",
      limit_keys: ["header:x-tenant", "header:x-user"],
      ...NUMBERS,
      tiers: { by: "header:x-plan", settings: { pro: { rate: 10, period: "1m", capacity: 30 } } },
    },
    { name: "all", limit_keys: [], ...NUMBERS },
  ],
};

const KEY = "203.0.113.7";

/** Reads and changes the keys of a service, and compares each with what the service then decides. */
async function operates(service: Served, url: string): Promise<void> {
  const on = ["--store", url, "--policy", service.policies];
  const done = async (...args: string[]) => {
    const { code, out, err } = await tidegate([...args, "--json", ...on]);
    const lacksTier = args.includes("plans") && !args.includes("--tier");
    const note = "tidegate: plans has tiers (pro): for a key of one of them, give its --tier\n";
    expect([code, err], args.join(" ")).toEqual([0, lacksTier ? note : ""]);
    return JSON.parse(out);
  };
  const decide = async (key: unknown, name = "api", count = 1) =>
    (await service.post("/v1/decide", { name, count, key })).body;
  /** Until it is granted: for a second, a service repeats a denial of Redis without a round trip. */
  const granted = async (count: number) => {
    while (!(await decide(KEY, "api", count)).ok);
  };
  for (let i = 0; i < 3; i++) expect((await decide(KEY)).ok).toBe(true);
  const denied = await decide(KEY);
  const read = await done("get", "api", KEY);
  expect(read).toMatchObject({ name: "api", key: KEY, ok: false, limit: 3, count: 1, retryAt: denied.retryAt });
  expect(read.config).toMatchObject({ kind: "token bucket", rate: 1, period: 3_600_000 });

  expect(await done("give", "api", KEY, "--count", "2")).toMatchObject({ ok: true });
  await granted(2);
  const charged = await done("charge", "api", KEY, "--count", "5");
  expect(charged.ok).toBe(false);
  expect(charged.value).toBeLessThan(-4);
  expect((await decide(KEY)).retryAt).toBe(charged.retryAt);
  expect(await done("reset", "api", KEY)).toMatchObject({ ok: true, value: 3 });
  await granted(3);

  const blocked = await done("block", "api", KEY, "--for", "15h");
  expect(blocked).toMatchObject({ ok: false, retryAfter: expect.closeTo(54_000_000, -6) });
  expect((await decide(KEY)).retryAt).toBe(blocked.retryAt);
  expect(await done("unblock", "api", KEY)).toMatchObject({ ok: true, value: 3 });
  await granted(1);

  // A key of two parts, one of which requests lack; a tier; a limit without a key; a client of IPv6.
  expect((await decide(["acme", null], "plans", 3)).ok).toBe(true);
  const part = ["--key", '["acme", null]'];
  expect(await done("get", "plans", ...part)).toMatchObject({ ok: false, limit: 3, key: ["acme", null] });
  expect(await done("get", "plans", ...part, "--tier", "pro")).toMatchObject({ limit: 30 });
  expect(await done("get", "plans", "acme", "-")).toMatchObject({ ok: true, value: 3 });
  expect((await decide(undefined, "all", 3)).ok).toBe(true);
  expect(await done("get", "all")).toMatchObject({ ok: false });
  expect((await decide("2001:db8::1", "api", 3)).ok).toBe(true);
  expect(await done("get", "api", "2001:db8:0:ff::2")).toMatchObject({ ok: false });
  // One that is too long, which is listed as its hash; in an array it is a part itself.
  const long = "x".repeat(2000);
  expect((await decide([long, null], "plans", 3)).ok).toBe(true);
  const hash = `sha256:${createHash("sha256").update(`2000:${long}-`).digest("hex")}`;
  expect(await done("get", "plans", hash)).toMatchObject({ ok: false, key: hash });
  expect(await done("get", "plans", "--key", JSON.stringify([hash, null]))).toMatchObject({ ok: true });

  // A mistake among them reads and writes nothing.
  const before = await done("get", "api", KEY);
  for (const wrong of [
    ["charge", "api", KEY, "--count=-1"],
    ["charge", "api", KEY, KEY],
    ["block", "api", KEY, "--for", "soon"],
    ["block", "api", KEY],
    ["reset", "apl", KEY],
    ["reset", "api", KEY, "--prefix", "x:", "--schema", "y"],
  ]) {
    const { code, out, err } = await tidegate([...wrong, ...on]);
    expect([code, out], wrong.join(" ")).toEqual([2, ""]);
    expect(err).toMatch(/^tidegate: .*\n$/);
  }
  const { now, value } = await done("get", "api", KEY);
  expect(value).toBeCloseTo(Math.min(before.value + (now - before.now) / 3_600_000, 3), 6);
}

test("file: the commands operate on the folder of a service, and make none that is missing", async () => {
  await using service = await serving(POLICIES, ["--store", "file:./limits", ...PATIENT]);
  await operates(service, `file:${join(service.folder, "limits")}`);
  const missing = join(service.folder, "limts");
  const { code, err } = await tidegate(["get", "all", "--store", `file:${missing}`, "--policy", service.policies]);
  expect([code, err]).toEqual([
    2,
    `tidegate: --store must be a folder that an app has made; there is none at ${missing}\n`,
  ]);
  expect(existsSync(missing)).toBe(false);
});

describe("redis", () => {
  test("the commands operate on the server of a service; a corrupt key is an error of its own, which a reset repairs", async () => {
    await using redis = await RedisServer.start();
    const url = redis.url;
    await using service = await serving(POLICIES, ["--store", url, ...PATIENT]);
    await operates(service, url);
    const on = ["--store", url, "--rate", "1", "--period", "1m"];
    const client = new Redis(url);
    await client.set("tidegate:other:bad", "junk");
    const bad = await tidegate(["get", "other", "bad", ...on]);
    expect([bad.code, bad.out]).toEqual([1, ""]);
    expect(bad.err).toMatch(/^tidegate: redis: check of "other:bad" failed: .*\n$/);
    expect((await tidegate(["get", "other", "good", ...on])).code).toBe(0);
    expect(await client.get("tidegate:other:bad")).toBe("junk");
    expect((await tidegate(["reset", "other", "bad", ...on])).code).toBe(0);
    expect((await tidegate(["charge", "other", "k", "--prefix", "app:", ...on])).code).toBe(0);
    expect(await client.keys("*other*")).toEqual(["app:other:k"]);
    const brace = await tidegate(["reset", "other", "k", "--prefix", "{", ...on]);
    expect([brace.code, brace.err]).toEqual([2, expect.stringMatching(/^tidegate: `prefix` must be .*got "\{"\n$/)]);
    await client.quit();
  });

  test("the guide's commands, with npx, print what the guide shows", async () => {
    await using redis = await RedisServer.start();
    const minutely = { ...NUMBERS, algorithm_config: { rate: 1, period: "1m", capacity: 3 } } as const;
    await using service = await serving({ rules: [{ name: "api", limit_keys: ["ip:address"], ...minutely }] });
    const bin = join(service.folder, "node_modules/.bin");
    mkdirSync(bin, { recursive: true });
    symlinkSync(join(root, "node_modules/ioredis"), join(service.folder, "node_modules/ioredis"));
    writeFileSync(join(bin, "tidegate"), `#!/bin/sh\nexec "${process.execPath}" "${BIN}" "$@"\n`, { mode: 0o755 });
    const env = { ...process.env, TIDEGATE_STORE: redis.url };
    const script = join(root, "examples/serve/keys.sh");
    const { code, out } = await ended(spawn("sh", [script], { cwd: service.folder, env, stdio: PIPES }));
    expect(code).toBe(0);
    const page = readFileSync(join(root, "npm/site/guide/keys.md"), "utf8");
    const [, shown = ""] = /^```text\n(.*?)^```$/ms.exec(page) ?? [];
    // Times differ with each run, by less than ten minutes; the numbers of the limit do not.
    const timeless = (printed: string) =>
      printed
        .replace(/\d{4}-[\d-]+T[\d:.]+Z/g, "<time>")
        .replace(/\d+ min( \d+ s)?(?=, until)/g, "<wait>")
        .replace(/\d+ min( \d+ s)?(?=, at)/g, "<until full>")
        .replace(/-([5-9]|1[0-4])(\.\d+)?|([5-9]|1[0-4])(\.\d+)?(?= tokens owed)/g, "<owed>")
        .replace(/\b\d{13}\b/g, "<ms>")
        .replace(/([3-8]\d\d|900)\d{3}\b/g, "<wait ms>");
    expect(timeless(out)).toBe(timeless(shown));
  });

  test("the commands use the project's ioredis or redis, and without both name them", async () => {
    await using redis = await RedisServer.start();
    const on = ["--store", redis.url, "--rate", "1", "--period", "1m"];
    await using service = await serving();
    for (const name of ["none", "ioredis", "redis"]) {
      const project = join(service.folder, name);
      mkdirSync(join(project, "node_modules"), { recursive: true });
      if (name !== "none") symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));
      const { code, err } = await tidegate(["charge", "api", "k", ...on], project);
      const message = `tidegate: neither ioredis nor redis is installed in ${project}: run npm install ioredis\n`;
      expect([code, err]).toEqual(name === "none" ? [2, message] : [0, ""]);
    }
    for (const name of ["ioredis", "redis"]) {
      // Of 16 databases, which are numbered from 0.
      const none = on.map((arg) => (arg.startsWith("redis:") ? `${arg}/16` : arg));
      const { code, out, err } = await tidegate(["get", "api", "k", ...none], join(service.folder, name));
      expect([code, out]).toEqual([1, ""]);
      expect(err).toMatch(/^tidegate: redis: connect of "redis:.*\/16" failed: ERR DB index is out of range\n$/);
    }
    await redis.kill();
    for (const name of ["ioredis", "redis"]) {
      const { code, out, err } = await tidegate(["get", "api", "k", ...on], join(service.folder, name));
      expect([code, out]).toEqual([1, ""]);
      expect(err).toMatch(/^tidegate: redis: connect of "redis:\/\/127\.0\.0\.1:\d+" failed: .*ECONNREFUSED.*\n$/);
    }
  });
});

test("postgres: the commands operate on the database of a service; a corrupt row is an error of its own, and no password is printed", async () => {
  await using server = await startServer({ fsync: "off" });
  const url = `postgres://postgres:secret@127.0.0.1:${server.port}/postgres`;
  const on = ["--store", url, "--rate", "1", "--period", "1m"];
  const without = await tidegate(["get", "other", "bad", ...on]);
  expect([without.code, without.out]).toEqual([1, ""]);
  expect(without.err).toMatch(/^tidegate: postgres: check of "other:bad" failed: .*migrate.*\n$/);
  await using service = await serving(POLICIES, ["--store", url, "--migrate", ...PATIENT]);
  await operates(service, url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`INSERT INTO tidegate.states (id, value, ts) VALUES ('other:bad', 'NaN', 0)`);
  const bad = await tidegate(["get", "other", "bad", ...on]);
  expect([bad.code, bad.out]).toEqual([1, ""]);
  expect(bad.err).toMatch(/^tidegate: postgres: check of "other:bad" failed: .*\n$/);
  expect((await tidegate(["get", "other", "good", ...on])).code).toBe(0);
  expect((await tidegate(["reset", "other", "bad", ...on])).code).toBe(0);
  expect((await tidegate(["get", "other", "bad", ...on])).code).toBe(0);
  await client.end();
  await server.stop();
  const down = await tidegate(["get", "other", "good", ...on]);
  expect([down.code, down.out]).toEqual([1, ""]);
  expect(down.err).toMatch(/^tidegate: postgres: connect of "postgres:\/\/postgres:\*\*\*@127.*ECONNREFUSED.*\n$/);
});

test.concurrent.each(["ioredis", "redis", "pg", "postgres"])(
  "with %s, a server that accepts the connection and sends nothing ends the command with an error",
  async (client) => {
    await using service = await serving();
    const project = join(service.folder, client);
    mkdirSync(join(project, "node_modules"), { recursive: true });
    symlinkSync(join(root, "node_modules", client), join(project, "node_modules", client));
    const silent = createServer((socket) => socket.on("error", () => {})).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const store = client.startsWith("p") ? "postgres" : "redis";
    const url = `${store}://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const { code, out, err } = await tidegate(
      ["get", "api", "k", "--store", url, "--rate", "1", "--period", "1m"],
      project,
    );
    silent.close();
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(new RegExp(`^tidegate: ${store}: connect of .* failed: no connection within 10 s\n$`));
  },
);
