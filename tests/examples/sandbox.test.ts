/** The playground's side of the server: what it accepts, what it refuses, and how many sandboxes it keeps. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineLimits, evaluate, SECOND } from "../../npm/tidegate/src/index.ts";
import { rateLimitHeaders } from "../../npm/tidegate/src/http/index.ts";
import { type Running, serve } from "./process.ts";

let server: Running;
beforeAll(async () => {
  server = await serve({ PORT: "0" });
});
afterAll(() => server?.stop());

const bucket = { kind: "token bucket", rate: 10, period: SECOND, capacity: 20, maxReserved: 5 } as const;

async function request(method: string, id: string, body?: unknown) {
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${server.url}/api/sandbox?id=${id}`, {
    method,
    ...(text === undefined ? {} : { body: text }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: the tests check the content
  return { status: response.status, headers: response.headers, body: (await response.json()) as any };
}

test("decides by the given policy and clock, to the bit, over HTTP", async () => {
  expect((await request("PUT", "exact", bucket)).status).toBe(201);
  const limits = defineLimits({ sandbox: bucket }, { now: () => now });
  let now = 1_000_000;
  let state = null;
  for (const [step, count, reserve, status] of [
    [0, 15, false, 200],
    [333, 7.5, false, 200],
    [1, 2, false, 429],
    [1, 3, true, 202],
    [0, 21, false, 400],
    [7777, 20, false, 200],
  ] as const) {
    now += step;
    const answer = await request("POST", "exact", { count, reserve, now });
    const here = limits.limit("sandbox", { count, reserve });
    const evaluated = evaluate(state, bucket, { now, count, reserve });
    state = evaluated.state;
    expect(answer.status).toBe(status);
    expect(answer.body.rows).toEqual([{ id: "sandbox", ...state }]);
    expect(answer.body.decision).toEqual(
      JSON.parse(JSON.stringify({ ...answer.body.decision, ...evaluated.decision, policy: undefined })),
    );
    for (const [name, value] of Object.entries(rateLimitHeaders(here))) expect(answer.headers.get(name)).toBe(value);
  }
});

test("the same calls with the same random numbers leave the same shards", async () => {
  const sharded = { ...bucket, shards: 8 };
  const run = async (id: string) => {
    await request("PUT", id, sharded);
    let rows: unknown;
    for (const random of [0.1, 0.9, 0.5, 0.5, 0.3])
      rows = (await request("POST", id, { count: 1.5, random, now: 5000 })).body.rows;
    return rows;
  };
  const first = await run("one");
  expect(await run("two")).toEqual(first);
  expect((first as unknown[]).length).toBeGreaterThan(1);
});

test("another policy keeps the state; another kind or number of shards starts anew, and so does a reset", async () => {
  await request("PUT", "kept", bucket);
  const taken = await request("POST", "kept", { count: 15, now: 5000 });
  expect((await request("PUT", "kept", { ...bucket, capacity: 3 })).body.rows).toEqual(taken.body.rows);
  expect((await request("PUT", "kept", { ...bucket, shards: 2 })).body.rows).toEqual([]);
  await request("POST", "kept", { count: 1, now: 5000 });
  expect((await request("DELETE", "kept")).body.rows).toEqual([]);
  expect((await request("GET", "kept")).body).toMatchObject({ value: 20, rows: [], id: "kept" });
});

describe("an invalid request is refused with a reason, and changes nothing", () => {
  test.each<[method: string, id: string, body: unknown, status: number, error: RegExp]>([
    ["PUT", "wrong", { ...bucket, rate: 0 }, 400, /`rate` must be/],
    ["PUT", "wrong", { ...bucket, rate: "1" }, 400, /`rate` must be/],
    ["PUT", "wrong", { ...bucket, shards: 17 }, 400, /`shards` must be at most 16 here; got 17/],
    ["PUT", "wrong", { ...bucket, shards: "65536" }, 400, /`shards` must be/],
    ["PUT", "wrong", { ...bucket, burst: 1 }, 400, /`burst` must be absent/],
    ["PUT", "wrong", "null", 400, /`sandbox` must be|`config` must be|must be an object/],
    ["PUT", "wrong", "[]", 400, /`kind` must be/],
    ["PUT", "wrong", "{", 400, /not JSON/],
    ["PUT", "wrong", `{"kind":"${"x".repeat(5000)}"}`, 413, /at most 4096 bytes/],
    ["PUT", "../wrong", bucket, 400, /`id` must be/],
    ["PUT", "x".repeat(65), bucket, 400, /`id` must be/],
    ["POST", "sound", { count: -1 }, 400, /`count` must be/],
    ["POST", "sound", { count: "1" }, 400, /`count` must be/],
    ["POST", "sound", { now: -1 }, 400, /`now` must be/],
    ["POST", "sound", { now: null }, 400, /`now` must be/],
    ["POST", "sound", { random: 1 }, 400, /`random` must be/],
    ["POST", "sound", { op: "reset" }, 400, /`op` must be one of limit, check, give, charge/],
    ["POST", "sound", { op: "constructor" }, 400, /`op` must be/],
    ["POST", "sound", { reserve: 1 }, 400, /`reserve` must be/],
    ["POST", "sound", { key: "k" }, 400, /`key` must be absent/],
    ["POST", "sound", "[]", 400, /`body` must be/],
    ["POST", "absent", {}, 404, /PUT a policy first/],
  ])("%s %s %j", async (method, id, body, status, error) => {
    await request("PUT", "sound", bucket);
    const answer = await request(method, id, body);
    expect(answer.status).toBe(status);
    expect(answer.body.error).toMatch(error);
    expect((await request("GET", "sound")).body.rows).toEqual([]);
    expect((await request("GET", "wrong")).status).toBe(404);
  });
});

test("one client cannot open more sandboxes than its limit", async () => {
  const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => request("PUT", `flood-${i}`, bucket)));
  const denied = answers.filter(({ status }) => status === 429);
  expect(denied.length).toBeGreaterThan(0);
  for (const { headers } of denied) expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
});

test("above the maximum, the least recently seen visitors are dropped", async () => {
  const routes = await import(new URL("../../examples/server/visitors.mjs", import.meta.url).href);
  const call = (method: string, id: string, body?: unknown) =>
    routes.sandboxRoutes[`${method} /api/sandbox`](new URL(`http://host/?id=${id}`), `client ${id}`, body);
  for (let i = 0; i < 500; i++) expect((await call("PUT", `v${i}`, bucket)).status).toBe(201);
  await call("POST", "v0", {}); // exists again
  expect((await call("PUT", "one-more", bucket)).status).toBe(201);
  expect((await call("GET", "v0")).status).toBe(200);
  expect((await call("GET", "v1")).status).toBe(404);
  expect((await call("GET", "v2")).status).toBe(200);
});
