/** Rules in shadow mode, with blocks, and with settings of their own for a failed store: in every way to decide. */
import { Client, credentials } from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PolicyDocument, PolicyRule } from "tidegate/policies";
import { freePort } from "../support/ports.ts";
import { bucket, root, type Served, serving, TOKEN } from "./service.ts";

const RULES: PolicyDocument = {
  rules: [
    { name: "trial", limit_keys: ["ip:address"], shadow: true, ...bucket(1) },
    { name: "api", limit_keys: ["ip:address"], block: { after: 2, for: "9h" }, ...bucket(2) },
  ],
};

let service: Served;
let count = 0;
/** An address that no other test has. */
const address = (): string => `192.0.2.${++count}`;
beforeAll(async () => {
  const args = ["--grpc-port", "0", "--trust-proxy", "127.0.0.1"];
  service = await serving(RULES, args, { TIDEGATE_ADMIN_TOKEN: TOKEN });
});
afterAll(() => service[Symbol.asyncDispose]());

const BLOCK = 9 * 3_600_000;

describe("rules in shadow mode and with a block", () => {
  test("POST /v1/decide and /v1/check decide so for a request", async () => {
    const request = { address: address() };
    const decide = () => service.post("/v1/decide", { request });
    expect((await decide()).body.decisions).toMatchObject([{ ok: true, shadow: { ok: true } }, { ok: true }]);
    const second = await decide();
    expect(second.body).toMatchObject({ ok: true, decisions: [{ ok: true, shadow: { ok: false } }, { ok: true }] });
    expect(second.headers.get("ratelimit-policy")).toBe('"api";q=2;w=7200');
    expect(second.headers.get("retry-after")).toBeNull();
    for (let i = 0; i < 3; i++) {
      const { body } = await service.post("/v1/check", { request });
      expect(body.ok).toBe(false);
      expect(body.retryAfter).toBeLessThan(BLOCK / 2);
    }
    expect((await decide()).body.retryAfter).toBeLessThan(BLOCK / 2);
    const blocked = await decide();
    expect(blocked.body.ok).toBe(false);
    expect(blocked.body.retryAfter).toBeGreaterThanOrEqual(BLOCK);
    expect(Number(blocked.headers.get("retry-after"))).toBeGreaterThanOrEqual(BLOCK / 1000);
  });

  test("POST /v1/decide and /v1/decide-all decide so by name", async () => {
    const key = address();
    const trial = () => service.post("/v1/decide", { name: "trial", key });
    expect((await trial()).body).toMatchObject({ ok: true, shadow: { ok: true } });
    const { body, headers } = await trial();
    expect(body).toMatchObject({ ok: true, shadow: { ok: false }, headers: {} });
    expect([headers.get("ratelimit"), headers.get("retry-after")]).toEqual([null, null]);
    const limits = [
      { name: "trial", key },
      { name: "api", key },
    ];
    const all = async () => (await service.post("/v1/decide-all", { limits })).body;
    for (const ok of [true, true, false]) expect(await all()).toMatchObject({ ok });
    expect((await all()).retryAfter).toBeGreaterThanOrEqual(BLOCK);
    expect((await service.post("/v1/decide", { name: "api", key })).body.retryAfter).toBeGreaterThan(BLOCK / 2);
  });

  test("forward auth decides so", async () => {
    const headers = { "x-forwarded-for": address(), "x-forwarded-uri": "/" };
    const auth = () => service.request("/v1/forward-auth", { headers });
    for (let i = 0; i < 2; i++) {
      const { status, headers } = await auth();
      expect([status, headers.get("ratelimit-policy")]).toEqual([200, '"api";q=2;w=7200']);
    }
    expect((await auth()).status).toBe(429);
    const blocked = await auth();
    expect(blocked.status).toBe(429);
    expect(Number(blocked.headers.get("retry-after"))).toBeGreaterThanOrEqual(BLOCK / 1000);
  });

  test("Envoy's rate limit protocol decides so", async () => {
    const types = new protobuf.Root().loadSync(`${root}/tests/serve/rls.proto`, { keepCase: true });
    const [Request, Response] = [types.lookupType("RateLimitRequest"), types.lookupType("RateLimitResponse")];
    const client = new Client(`127.0.0.1:${service.log()[0]?.["grpcPort"]}`, credentials.createInsecure());
    const request = { domain: "envoy", descriptors: [{ entries: [{ key: "remote_address", value: address() }] }] };
    const options = { enums: String, longs: Number, defaults: true };
    const call = () =>
      new Promise<{ response_headers_to_add: { key: string; value: string }[] }>((resolve, reject) => {
        const path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
        const encode = (message: object) => Buffer.from(Request.encode(Request.fromObject(message)).finish());
        const decode = (bytes: Buffer) => Response.toObject(Response.decode(bytes), options);
        client.makeUnaryRequest(path, encode, decode, request, (error, found) =>
          error === null ? resolve(found as never) : reject(error),
        );
      });
    for (const left of [1, 0]) {
      expect(await call()).toMatchObject({
        overall_code: "OK",
        statuses: [{ code: "OK", current_limit: { name: "api" }, limit_remaining: left }],
      });
    }
    await call();
    const blocked = await call();
    expect(blocked).toMatchObject({
      overall_code: "OVER_LIMIT",
      statuses: [{ code: "OVER_LIMIT", current_limit: { name: "api" } }],
    });
    const wait = blocked.response_headers_to_add.find(({ key }) => key === "Retry-After")?.value;
    expect(Number(wait)).toBeGreaterThanOrEqual(BLOCK / 1000);
    client.close();
  });

  test("the metrics have what the rule in shadow mode would have denied", async () => {
    const { body } = await service.request("/metrics");
    expect(body).toMatch(
      /tidegate_decisions_total\{limit="trial",operation="\w+",outcome="shadow denied",degraded="false"\} \d/,
    );
  });
});

test("a rule whose store fails follows its own setting, and else the service's", async () => {
  const store = `redis://127.0.0.1:${await freePort()}`;
  const rules = [
    { name: "open", limit_keys: [], onStoreError: "allow", ...bucket(1) },
    { name: "local", limit_keys: [], onStoreError: { local: 0.5 }, ...bucket(4) },
    { name: "closed", match: { "query:closed": "1" }, limit_keys: [], ...bucket(1) },
    { name: "trial", limit_keys: [], shadow: true, ...bucket(1) },
  ] satisfies PolicyRule[];
  await using failing = await serving({ rules }, ["--store", store, "--on-store-error", "deny"]);
  const decide = async (url: string) => (await failing.post("/v1/decide", { request: { url } })).body;
  for (const ok of [true, true, false]) expect(await decide("/")).toMatchObject({ ok, degraded: true });
  expect(await decide("/?closed=1")).toMatchObject({ ok: false, degraded: true });
  for (const [name, ok] of [
    ["open", true],
    ["closed", false],
    ["trial", true],
  ]) {
    expect((await failing.post("/v1/decide", { name })).body).toMatchObject({ ok, degraded: true });
  }
});
