import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseList } from "structured-headers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Config, evaluate, SECOND } from "../../npm/tidegate/src/index.ts";
import { type Running, serve } from "./process.ts";

let server: Running;
beforeAll(async () => {
  server = await serve({ PORT: "0" });
});
afterAll(() => server?.stop());

interface Body {
  value: number;
  ts: number;
  now: number;
  retryAt?: number;
  runAt?: number;
  status?: number;
  type?: string;
  [field: string]: unknown;
}

async function request(path: string, method = "GET"): Promise<{ status: number; headers: Headers; body: Body }> {
  const response = await fetch(server.url + path, { method });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}
const limitsIn = (headers: Headers) =>
  parseList(headers.get("RateLimit") ?? "").map(([name, all]) => [name, Object.fromEntries(all as never)]);

type Answer = Awaited<ReturnType<typeof request>>;

/** The answers to one request after another, until it is denied: how many are granted depends on how long they take. */
async function untilDenied(path: string, method = "GET"): Promise<{ granted: Answer[]; denied: Answer }> {
  const granted: Answer[] = [];
  for (;;) {
    const answer = await request(path, method);
    if (answer.status === 429) return { granted, denied: answer };
    granted.push(answer);
  }
}

/**
 * A denial whose `retryAt` is exact: granted then, denied one ms before. `written` is the grant that wrote the state: the
 * state of the denial is refilled up to the denial, and to refill it once more would round twice.
 */
function exact({ status, headers, body }: Answer, written: Answer, config: Config, count: number, reserve = false) {
  expect(status).toBe(429);
  expect(headers.get("content-type")).toBe("application/problem+json");
  expect(body.type).toBe("https://iana.org/assignments/http-problem-types#quota-exceeded");
  const retryAt = body.retryAt as number;
  expect(headers.get("retry-after")).toBe(String(Math.max(1, Math.ceil((retryAt - body.now) / 1000))));
  const state = { value: written.body.value, ts: written.body.ts };
  expect(evaluate(state, config, { now: retryAt, count, reserve }).decision.ok).toBe(true);
  expect(evaluate(state, config, { now: retryAt - 1, count, reserve }).decision.ok).toBe(false);
}

describe("the three curl lines that the server prints", () => {
  test("are printed with its address", () => {
    const lines = server.output().match(/curl -i .*/g);
    expect(lines).toEqual([
      `curl -i '${server.url}/api/message?cost=15'`,
      `curl -i '${server.url}/api/trial'`,
      `curl -i -X POST '${server.url}/api/chat?tokens=500'`,
    ]);
  });

  test("/api/message: granted, then denied until the exact retryAt, then granted", async () => {
    const granted = await request("/api/message?cost=15");
    expect([granted.status, granted.headers.has("retry-after")]).toEqual([200, false]);
    expect(granted.headers.get("ratelimit-policy")).toBe('"message";q=20;w=20');
    expect(granted.headers.get("ratelimit")).toBe('"message";r=5;t=5');
    const { granted: more, denied } = await untilDenied("/api/message?cost=7");
    exact(denied, more.at(-1) ?? granted, { kind: "token bucket", rate: 1, period: SECOND, capacity: 20 }, 7);
    // No other client takes tokens, so the same request is granted from retryAt on. Both use the same clock.
    await sleep((denied.body.retryAt as number) - Date.now());
    while (Date.now() < (denied.body.retryAt as number)) await sleep(1);
    expect((await request("/api/message?cost=7")).status).toBe(200);
  });

  test("/api/message: a cost that never fits is 400 without Retry-After; costs are clamped", async () => {
    for (const cost of ["21", "1000000", "999999999999999"]) {
      const { status, headers, body } = await request(`/api/message?cost=${cost}`);
      expect([status, headers.has("retry-after"), body.type]).toEqual([400, false, "about:blank"]);
    }
    const before = (await request("/api/value")).body;
    // A negative cost mints nothing, and an invalid one costs one token.
    const costs = ["-100", "0", "NaN", "1e308", "0x10", "", "1.5"];
    let granted = 0;
    for (const cost of costs) if ((await request(`/api/message?cost=${cost}`)).status === 200) granted++;
    const { value, ts } = (await request("/api/value")).body;
    expect(granted).toBeLessThanOrEqual(costs.length);
    // One token comes back in a second. Each value is that of its `ts`: the server reads `now` later.
    expect(value).toBeLessThanOrEqual(before.value - granted + (ts - before.ts) / 1000 + 1e-6);
  });

  test("/api/trial: three per window for all clients together", async () => {
    // If the window ends between two requests a fourth is granted, with a later window.
    const answers = [];
    for (let i = 0; i < 4; i++) answers.push(await request("/api/trial"));
    const [first] = answers as [(typeof answers)[0]];
    const same = answers.filter(({ body }) => body.ts === first.body.ts);
    const statuses = same.map(({ status }) => status);
    expect(statuses).toEqual([200, 200, 200, 429].slice(0, same.length));
    for (const { body, headers } of same) {
      const [[, limit]] = limitsIn(headers) as [[unknown, { t: number }]];
      expect(limit.t).toBe(Math.ceil((body.ts + 30_000 - body.now) / 1000));
    }
    const denied = answers.find(({ status }) => status === 429);
    if (denied !== undefined) {
      exact(denied, denied, { kind: "fixed window", rate: 3, period: 30 * SECOND, start: denied.body.ts % 30_000 }, 1);
      expect(denied.body.retryAt).toBe(denied.body.ts + 30_000);
    }
  });

  test("/api/chat: runs immediately, then is reserved for the exact time at which it is paid, then denied", async () => {
    const config: Config = { kind: "token bucket", rate: 100, period: SECOND, capacity: 500, maxReserved: 1000 };
    const { granted, denied } = await untilDenied("/api/chat?tokens=500", "POST");
    const reserved = granted.filter(({ body }) => body.value < 0);
    expect(granted.map(({ status }) => status)).toEqual(
      granted.map((answer) => (reserved.includes(answer) ? 202 : 200)),
    );
    expect(granted[0]?.status).toBe(200);
    expect(reserved).not.toEqual([]);
    for (const { body } of reserved) {
      const paid = (now: number) =>
        evaluate({ value: body.value, ts: body.ts }, config, { now, count: 0 }).decision.value;
      expect(paid(body.runAt as number)).toBeGreaterThanOrEqual(0);
      expect(paid((body.runAt as number) - 1)).toBeLessThan(0);
    }
    exact(denied, reserved.at(-1) as Answer, config, 500, true);
  });
});

describe("the server", () => {
  test("X-Forwarded-For does not change the key", async () => {
    const { key } = (await request("/api/value")).body;
    const forged = await fetch(`${server.url}/api/value`, {
      headers: { "X-Forwarded-For": "6.6.6.6", Forwarded: "for=6.6.6.6" },
    });
    expect([key, ((await forged.json()) as Body)["key"]]).toEqual(["127.0.0.1", "127.0.0.1"]);
  });

  test("serves the built page of the playground, and no other file", async () => {
    const page = await fetch(`${server.url}/`);
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("script-src 'self' 'wasm-unsafe-eval'");
    expect(policy).not.toMatch(/unsafe-inline|'unsafe-eval'|https?:|\*/);
    const html = await page.text();
    expect(html).not.toMatch(/https?:\/\//);
    const [, script] = /<script type="module"[^>]* src="([^"]+)"/.exec(html) ?? [];
    expect((await fetch(server.url + script)).headers.get("content-type")).toBe("text/javascript");
    for (const path of [
      "/assets/../../vite.config.ts",
      "/assets/%2e%2e/%2e%2e/vite.config.ts",
      "/..%2f..%2fpackage.json",
      "/src/main.tsx",
      "/server.mjs",
      "/assets",
      "/nowhere",
      "/__proto__",
    ]) {
      expect([path, (await fetch(server.url + path)).status]).toEqual([path, 404]);
    }
  });

  test("reports that its port is in use, and uses another", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((done) => other.once("listening", done));
    const { port } = other.address() as AddressInfo;
    const second = await serve({ PORT: String(port) });
    expect(second.output()).toContain(`Port ${port} is taken: looking for a free one.`);
    expect(second.url).not.toContain(`:${port}`);
    expect((await fetch(`${second.url}/api/value`)).status).toBe(200);
    expect(await second.stop("SIGINT")).toBe(0);
    other.close();
  });

  test("refuses an invalid PORT", async () => {
    await expect(serve({ PORT: "70000" })).rejects.toThrow(
      'ended with 1:\n\nPORT must be an integer from 0 (any free port) to 65535; got "70000"',
    );
  });

  test("Ctrl-C ends it immediately, with a connection open", async () => {
    const second = await serve({ PORT: "0" });
    await (await fetch(`${second.url}/api/value`)).text(); // keep-alive
    expect(await second.stop("SIGINT")).toBe(0);
    expect(second.output()).toMatch(/Stopped\.\n$/);
  });
});
