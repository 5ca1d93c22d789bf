import { once } from "node:events";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { POLICIES, type Served, serving, TOKEN } from "./service.ts";

let service: Served;
let count = 0;
/** An address that no other test has. */
const address = (): string => `192.0.2.${++count}`;

beforeAll(async () => {
  service = await serving(
    {
      rules: [
        ...POLICIES.rules,
        {
          name: "plans",
          limit_keys: ["header:x-api-key", "jwt:org"],
          match: { "query:plan": "on" },
          algorithm: "fixed_window",
          algorithm_config: { rate: 5, period: "1h", maxReserved: 10 },
          tiers: { by: "jwt:plan", settings: { pro: { rate: 50, period: "1h" } } },
        },
        {
          name: "shared",
          limit_keys: [],
          match: { "query:shared": "on" },
          algorithm: "token_bucket",
          algorithm_config: { rps: 1, burst: 2 },
        },
      ],
    },
    [],
    { TIDEGATE_ADMIN_TOKEN: TOKEN },
  );
});
afterAll(() => service[Symbol.asyncDispose]());

test("GET /v1/state: the remedy of a mistake is a query, which a GET takes", async () => {
  const headers = { authorization: `Bearer ${TOKEN}` };
  for (const query of ["", "?name=api&key=192.0.2.1&keys=1"]) {
    const { status, body } = await service.request(`/v1/state${query}`, { headers });
    const remedy = "Send a query such as ?name=api&key=203.0.113.7; GET /v1/openapi.json has all fields.";
    expect([status, body.remedy]).toEqual([400, remedy]);
  }
  const { status, body } = await service.request("/v1/state?name=api", { headers });
  expect([status, body.remedy]).toEqual([400, expect.stringMatching(/^Repeat `key` for each value.*POST \/v1\/check/)]);
});

describe("POST /v1/decide", () => {
  test("grants what the bucket has, then denies with the time of the next token", async () => {
    const body = { name: "api", key: address() };
    const granted = [];
    for (let i = 0; i < 3; i++) granted.push(await service.post("/v1/decide", body));
    expect(granted.map(({ status, body: { ok, remaining } }) => [status, ok, remaining])).toEqual([
      [200, true, 2],
      [200, true, 1],
      [200, true, 0],
    ]);
    const denied = await service.post("/v1/decide", body);
    expect(denied.body).toMatchObject({ ok: false, remaining: 0, limit: 3, policy: { name: "api" } });
    expect(denied.body.retryAt - denied.body.now).toBe(denied.body.retryAfter);
    expect(Number(denied.headers.get("retry-after"))).toBe(Math.ceil(denied.body.retryAfter / 1000));
    expect(denied.headers.get("ratelimit")).toMatch(/^"api";r=0;t=\d+$/);
    expect(denied.body.headers).toEqual({
      "RateLimit-Policy": denied.headers.get("ratelimit-policy"),
      RateLimit: denied.headers.get("ratelimit"),
      "Retry-After": denied.headers.get("retry-after"),
    });
  });

  test("decides a request by all rules that match it, on the same state as a call by name", async () => {
    const client = address();
    const request = { address: client, headers: { "X-API-Key": "k1" }, url: "/a?plan=on", claims: { org: "acme" } };
    const decided = await service.post("/v1/decide", { request });
    expect(
      decided.body.decisions.map((one: { policy: object; remaining: number }) => [one.policy, one.remaining]),
    ).toMatchObject([
      [{ name: "api" }, 2],
      [{ name: "plans" }, 4],
    ]);
    expect(decided.headers.get("ratelimit")).toMatch(/^"api";r=2;t=\d+, "plans";r=4;t=\d+$/);
    const byName = await service.post("/v1/check", { name: "plans", key: ["k1", "acme"], count: 0 });
    expect(byName.body.remaining).toBe(4);
    const pro = await service.post("/v1/check", { name: "plans", key: ["k1", "acme"], tier: "pro" });
    expect(pro.body.policy).toMatchObject({ rate: 50 });
    expect((await service.post("/v1/check", { name: "plans", key: ["k1", null], count: 0 })).body.remaining).toBe(5);
  });

  test("an IPv6 client is its network, by name as in a request", async () => {
    await service.post("/v1/decide", { request: { address: "2001:db8:0:1234::1" } });
    const { body } = await service.post("/v1/check", { name: "api", key: "2001:db8:0:12ff::2" });
    expect(body.value).toBeLessThan(3);
  });

  test("a reservation is granted for later", async () => {
    const body = { name: "plans", key: ["reserved", null], count: 6 };
    const refused = await service.post("/v1/decide", body);
    const reserved = await service.post("/v1/decide", { ...body, reserve: true });
    expect([refused.body.ok, refused.body.reason]).toEqual([false, "exceeds capacity"]);
    expect(reserved.body).toMatchObject({ ok: true, reserved: true, value: -1 });
    expect(reserved.body.retryAt).toBeGreaterThan(reserved.body.now);
  });

  test("check takes nothing", async () => {
    const body = { name: "api", key: address(), count: 3 };
    for (let i = 0; i < 2; i++) expect((await service.post("/v1/check", body)).body.ok).toBe(true);
  });
});

test("POST /v1/decide-all takes from all or from none", async () => {
  const key = address();
  const both = { limits: [{ name: "api", key, count: 2 }, { name: "shared" }] };
  const first = await service.post("/v1/decide-all", both);
  expect([first.body.ok, first.body.decisions.length]).toEqual([true, 2]);
  const second = await service.post("/v1/decide-all", both);
  expect([second.body.ok, second.body.decisions.map(({ ok }: { ok: boolean }) => ok)]).toEqual([false, [false, true]]);
  expect((await service.post("/v1/check", { name: "shared", count: 0 })).body.value).toBeGreaterThanOrEqual(1);
});

const NAMES = "one of the rules in force: api, plans, shared";
const COUNT = "a number of tokens from 0 to 1099511627776";
const MISTAKES: readonly (readonly [
  path: string,
  body: unknown,
  field: string,
  rule: string | RegExp,
  value?: unknown,
])[] = [
  ["/v1/decide", "{", "body", /^JSON \(/, "{"],
  ["/v1/decide", [], "body", "an object", []],
  ["/v1/decide", {}, "name", "the name of a rule of the policies, a string"],
  ["/v1/decide", { name: "apl", key: "1" }, "name", NAMES, "apl"],
  ["/v1/decide", { name: "api" }, "key", 'a value for each of limit_keys of "api", in order: ip:address'],
  ["/v1/decide", { name: "api", key: "" }, "key", 'not empty; an empty value is [""]', ""],
  ["/v1/decide", { name: "api", key: 7 }, "key", /^a string, or an array/, 7],
  ["/v1/decide", { name: "plans", key: "k1" }, "key", /in order: header:x-api-key, jwt:org$/, "k1"],
  ["/v1/decide", { name: "shared", key: "k1" }, "key", 'left out: all requests share the limit "shared"', "k1"],
  ["/v1/decide", { name: "api", key: "1", count: -1 }, "count", COUNT, -1],
  ["/v1/decide", { name: "api", key: "1", count: "1" }, "count", COUNT, "1"],
  ["/v1/decide", { name: "api", key: "1", cost: 1 }, "cost", "absent: there is no such field", 1],
  ["/v1/decide", { name: "api", key: "1", cost: 1, price: 2 }, "cost", "absent: there is no such field", 1],
  ["/v1/decide", { name: "api", key: "1", reserve: 1 }, "reserve", "true or false", 1],
  ["/v1/decide", { request: {} }, "request.address", "an IP address, because a rule reads ip:address"],
  ["/v1/decide", { request: { address: "10.0.0.1:80" } }, "request.address", /^an IP address/, "10.0.0.1:80"],
  ["/v1/decide", { request: { adress: "10.0.0.1" } }, "request.adress", "absent: there is no such field", "10.0.0.1"],
  ["/v1/decide", { request: { headers: "x" } }, "request.headers", "an object of headers, each a string", "x"],
  ["/v1/decide", { request: { headers: { a: 5 } } }, "request.headers.a", "a string, or an array of strings", 5],
  ["/v1/decide", { request: {}, name: "api" }, "name", "absent with `request`", "api"],
  ["/v1/decide-all", [], "body", "an object", []],
  ["/v1/decide-all", { limits: [{ name: "shared" }], request: 1 }, "request", "absent: there is no such field", 1],
  ["/v1/decide-all", { limits: [] }, "limits", "an array of 1 to 100 limits", []],
  ["/v1/decide-all", { limits: [{ name: "shared" }, { name: "no" }] }, "limits[1].name", NAMES, "no"],
  ["/v1/decide-all", { limits: [{ name: "shared", count: null }] }, "limits[0].count", COUNT, null],
];

describe("a mistake in a request", () => {
  test.each(MISTAKES.map(([path, body, field, rule, value]) => [path, body, field, rule, value] as const))(
    "%s %j: `%s` must be %s",
    async (path, body, field, rule, value) => {
      const reply = await service.post(path, body);
      expect(reply.status).toBe(400);
      expect(reply.headers.get("content-type")).toBe("application/problem+json");
      expect(reply.body).toMatchObject({ type: "about:blank", title: "Bad Request", status: 400, field });
      expect(reply.body.rule).toEqual(typeof rule === "string" ? rule : expect.stringMatching(rule));
      expect(reply.body.value).toEqual(value);
      expect(reply.body.remedy).toMatch(/^(Send|Use|Leave) /);
      expect(reply.body.detail).toBe(
        `\`${field}\` must be ${reply.body.rule}; got ${value === undefined ? "nothing" : JSON.stringify(value)}. ${reply.body.remedy}`,
      );
    },
  );

  test.each([
    ["1e999", "Infinity", "Infinity"],
    ["-1e999", "-Infinity", "-Infinity"],
    ["[1e999]", '["Infinity"]', ["Infinity"]],
  ])("a count of %s, which is infinite, is reported as %s", async (written, got, value) => {
    const { status, body } = await service.post("/v1/decide", `{"name":"api","key":"192.0.2.1","count":${written}}`);
    expect([status, body.value]).toEqual([400, value]);
    expect(body.detail).toContain(`\`count\` must be ${COUNT}; got ${got}. `);
  });

  test("a value that is nested too deeply to be shown is a mistake, too", async () => {
    const deep = (levels: number): string =>
      `{"name":"api","key":"192.0.2.1","count":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    const { status, body } = await service.post("/v1/decide", deep(30_000));
    expect([status, body.field, body.value]).toEqual([400, "count", "a value nested too deeply…"]);
  });

  test("a value is shown in at most 200 characters", async () => {
    const shown = async (length: number) => {
      const count = "x".repeat(length - '""'.length);
      return (await service.post("/v1/decide", { name: "api", key: "1", count })).body.value;
    };
    expect([await shown(200), await shown(201)]).toEqual(["x".repeat(198), `"${"x".repeat(199)}…`]);
  });

  test("the remedy of a wrong key names the three ways to send one", async () => {
    const { body } = await service.post("/v1/decide", { name: "shared", key: "k1" });
    const ways =
      "one value as a string, several as an array with null for an absent one, and no `key` if the rule has none";
    expect(body.remedy).toBe(`Send ${ways}.`);
  });

  test("takes no tokens", async () => {
    const key = address();
    await service.post("/v1/decide-all", { limits: [{ name: "api", key, count: 3 }, { name: "no" }] });
    expect((await service.post("/v1/check", { name: "api", key, count: 3 })).body.ok).toBe(true);
  });

  test("a body of another type is refused: pages in a browser may send it without asking", async () => {
    const body = JSON.stringify({ name: "shared" });
    const plain = await service.request("/v1/decide", { method: "POST", body });
    expect([plain.status, plain.body.detail]).toEqual([415, expect.stringContaining("Content-Type: application/json")]);
    for (const type of ["application/jsonlines", "text/plain; application/json"]) {
      const headers = { "content-type": type };
      expect((await service.request("/v1/decide", { method: "POST", body, headers })).status).toBe(415);
    }
  });

  test("a compressed body is refused by name: its bytes are no JSON", async () => {
    const body = gzipSync(JSON.stringify({ name: "shared" }));
    for (const encoding of ["gzip", "gzip, identity", "identity, gzip"]) {
      const headers = { "content-type": "application/json", "content-encoding": encoding };
      const packed = await service.request("/v1/decide", { method: "POST", headers, body });
      expect([packed.status, packed.body.detail]).toEqual([415, expect.stringContaining(`Encoding: ${encoding})`)]);
    }
    const plain = { "content-type": "application/json", "content-encoding": "identity" };
    const options = { method: "POST", headers: plain, body: JSON.stringify({ name: "shared" }) };
    expect((await service.request("/v1/check", options)).status).toBe(200);
  });

  test("a body that is not UTF-8 is refused: keys that differ in such bytes would share one limit", async () => {
    const headers = { "content-type": "application/json" };
    const sent = (key: number[]) => {
      const body = Buffer.concat([Buffer.from('{ "name": "shared", "key": "'), Buffer.from(key), Buffer.from('" }')]);
      return service.request("/v1/check", { method: "POST", headers, body });
    };
    // In ISO 8859-1 an accented letter; a surrogate; an overlong slash.
    for (const bytes of [[0xe9], [0xed, 0xa0, 0x80], [0xc0, 0xaf]]) {
      const { status, body } = await sent(bytes);
      expect([status, body.field, body.rule]).toEqual([400, "body", expect.stringMatching(/^JSON \(.*utf-8/)]);
      expect(body.value).toMatch(/\ufffd" \}$/);
    }
  });

  test("a body that is too large is refused, with its length or without", async () => {
    const body = JSON.stringify({ name: "shared", key: "x".repeat(70_000) });
    const sized = await service.post("/v1/decide", body);
    expect([sized.status, sized.body.title]).toEqual([413, "Content Too Large"]);
    const json = { "content-type": "application/json" };
    const most = JSON.stringify({ name: "shared" }).padEnd(65_536);
    const largest = (text: string) => service.request("/v1/check", { method: "POST", body: text, headers: json });
    expect([(await largest(most)).status, (await largest(`${most} `)).status]).toEqual([200, 413]);
    const headers = { "content-type": "application/json" };
    const options = { method: "POST", headers, body: new Blob([body]).stream(), duplex: "half" } as RequestInit;
    expect((await service.request("/v1/decide", options)).status).toBe(413);
  });

  test("a body in chunks that states a small length, too, which a lenient parser accepts, is counted", async () => {
    await using lenient = await serving(POLICIES, [], { NODE_OPTIONS: "--insecure-http-parser" });
    const socket = connect(Number(new URL(lenient.url).port), "127.0.0.1");
    let answer = "";
    socket.setEncoding("utf8").on("data", (text: string) => (answer += text));
    const head = "POST /v1/decide HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n";
    socket.write(`${head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n`);
    socket.write(`${(70_000).toString(16)}\r\n${"x".repeat(70_000)}\r\n0\r\n\r\n`);
    await once(socket, "close");
    expect(answer.slice(0, 12)).toBe("HTTP/1.1 413");
  });

  test("headers that are too large are refused", async () => {
    expect((await service.request("/healthz", { headers: { "x-large": "x".repeat(17_000) } })).status).toBe(431);
  });

  test("an unknown path is a problem that names the API", async () => {
    const { status, body } = await service.request("/v2/decide");
    expect([status, body.detail]).toEqual([404, "There is no GET /v2/decide; GET /v1/openapi.json lists the API."]);
  });

  test("a method that a path does not take is a problem that names those it takes", async () => {
    const { status, headers, body } = await service.request("/v1/decide");
    expect([status, headers.get("allow"), body.title]).toEqual([405, "POST", "Method Not Allowed"]);
    expect(body.detail).toBe("/v1/decide takes POST, not GET; GET /v1/openapi.json lists the API.");
    const posted = await service.post("/healthz", {});
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });
});

describe("the OpenAPI document", () => {
  test("is valid OpenAPI 3.1, and lists every route", async () => {
    const { body } = await service.request("/v1/openapi.json");
    const result = await new Validator().validate(structuredClone(body));
    expect(result.errors).toBeUndefined();
    expect([result.valid, body.openapi]).toEqual([true, "3.1.0"]);
    const paths = ["block", "charge", "check", "decide", "decide-all", "give", "reset", "state"];
    expect(Object.keys(body.paths).sort()).toEqual(paths.map((path) => `/v1/${path}`));
  });

  test("lists the statuses of a route's answers: a decision without the store is no 503, and a GET has no body", async () => {
    const { body } = await service.request("/v1/openapi.json");
    const statuses = (path: string, method = "post") => Object.keys(body.paths[`/v1/${path}`][method].responses).join();
    for (const path of ["decide", "check", "decide-all"]) expect(statuses(path)).toBe("200,400,413,415");
    for (const path of ["reset", "give", "charge", "block"]) expect(statuses(path)).toBe("200,400,401,413,415,503");
    expect(statuses("state", "get")).toBe("200,400,401,503");
  });

  test("the validator refuses a document that is not: this test can fail", async () => {
    const { body } = await service.request("/v1/openapi.json");
    body.paths["/v1/decide"].post.responses = [];
    expect((await new Validator().validate(body)).valid).toBe(false);
  });

  test("its schemas accept what the service answers, and its examples are requests", async () => {
    const { body: document } = await service.request("/v1/openapi.json");
    const ajv = new Ajv2020({ strict: false });
    ajv.addSchema(document, "doc");
    const valid = (schema: string, value: unknown) => {
      const check = ajv.getSchema(`doc#/components/schemas/${schema}`);
      expect([check?.(value), check?.errors]).toEqual([true, null]);
    };
    for (const path of ["decide", "check", "decide-all"] as const) {
      const { example } = document.paths[`/v1/${path}`].post.requestBody.content["application/json"];
      const { status, body } = await service.post(`/v1/${path}`, example);
      expect(status).toBe(200);
      valid(path === "decide-all" ? "AllDecision" : "OneDecision", body);
    }
    valid("AllDecision", (await service.post("/v1/decide", { request: { address: address() } })).body);
    valid("Problem", (await service.post("/v1/decide", {})).body);
  });
});
