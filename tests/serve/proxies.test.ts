/** Real proxies in front of the service, with the configurations of the guide; and the routes that they call. */
import { request as send } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PolicyDocument } from "tidegate/policies";
import { ENVOY_RATE_LIMIT, get, type Proxied, proxied, PROXIES } from "./proxy.ts";
import { bucket, type Served, serving } from "./service.ts";

/** Three requests for each address, one for each user of the query, two POSTs. */
const RULES: PolicyDocument = {
  rules: [
    { name: "api", limit_keys: ["ip:address"], ...bucket(3) },
    { name: "user", match: { "query:scarce": "1" }, limit_keys: ["query:user"], ...bucket(1) },
    { name: "posts", match: { "header:x-forwarded-method": "POST" }, limit_keys: ["header:x-api-key"], ...bucket(2) },
  ],
};

describe.each(PROXIES.map((proxy) => [proxy.program, proxy] as const))("%s", (_, proxy) => {
  const { program, fieldsOnGrants = true } = proxy;
  let service: Served;
  let site: Proxied;

  beforeAll(async () => {
    service = await serving(RULES, ["--trust-proxy", "127.0.0.1"]);
    site = await proxied(proxy, service);
  });
  afterAll(async () => {
    await site?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  test("passes on what is granted, with the fields, then answers 429 with the fields, itself", async () => {
    const replies = [];
    for (let i = 0; i < 4; i++) replies.push(await get(site.port, "127.0.0.2", `/page?i=${i}`));
    const left = (n: number) => expect.stringMatching(new RegExp(`^"api";r=${n};t=\\d+$`));
    const onGrant = <T>(field: T) => (fieldsOnGrants ? field : undefined);
    expect(replies.map(({ status, headers }) => [status, headers["ratelimit"]])).toEqual([
      ...[2, 1, 0].map((n) => [200, onGrant(left(n))]),
      [429, left(0)],
    ]);
    const [first, , , denied] = replies;
    const policy = onGrant('"api";q=3;w=10800');
    expect([first?.body, first?.headers["ratelimit-policy"]]).toEqual(["from the application", policy]);
    expect(denied?.headers["ratelimit-policy"]).toBe('"api";q=3;w=10800');
    // Up to half of the wait is added, so that clients do not return together.
    const wait = Number(denied?.headers["retry-after"]);
    expect(wait).toBeGreaterThan(3500);
    expect(wait).toBeLessThanOrEqual(3630);
    expect(denied?.headers["content-type"]).toBe("application/problem+json");
    expect(JSON.parse(denied?.body ?? "")).toMatchObject({ title: "Quota exceeded", status: 429 });
    expect(site.received.filter((line) => line.startsWith("GET /page"))).toEqual([
      "GET /page?i=0",
      "GET /page?i=1",
      "GET /page?i=2",
    ]);
  });

  test("a client that writes X-Forwarded-For or X-Forwarded-Uri itself has the same limit, and takes no other's", async () => {
    const statuses = [];
    for (let i = 0; i < 4; i++) {
      const headers = {
        "X-Forwarded-For": `198.51.100.${i}`,
        Forwarded: `for=198.51.100.${i}`,
        "X-Real-IP": `198.51.100.${i}`,
      };
      statuses.push((await get(site.port, "127.0.0.3", "/", { headers })).status);
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
    const { body } = await service.post("/v1/check", { name: "api", key: "198.51.100.0", count: 3 });
    expect(body.ok).toBe(true);
    const uri = { "X-Forwarded-Uri": "/?free=1", "X-Original-URI": "/?free=1" };
    const scarce = "/?scarce=1&user=spoof";
    const scarces = [];
    for (const from of ["127.0.0.4", "127.0.0.5"])
      scarces.push((await get(site.port, from, scarce, { headers: uri })).status);
    expect(scarces).toEqual([200, 429]);
  });

  test("rules read the original query, method and headers", async () => {
    const statuses = [];
    for (const user of ["a", "a", "b"])
      statuses.push((await get(site.port, "127.0.0.6", `/?scarce=1&user=${user}`)).status);
    expect(statuses).toEqual([200, 429, 200]);
    const post = (key: string) =>
      get(site.port, "127.0.0.7", "/form", {
        method: "POST",
        headers: { "x-api-key": key, "x-forwarded-method": "GET" },
        body: "a=1",
      });
    const posts = [];
    for (const key of ["k", "k", "k"]) posts.push((await post(key)).status);
    expect(posts).toEqual([200, 200, 429]);
    expect(site.received.filter((line) => line === "POST /form")).toHaveLength(2);
  });

  test("a request with Expect: 100-continue, as curl sends for a large body, is limited", async () => {
    const post = (from: string) =>
      get(site.port, from, "/large", {
        method: "POST",
        headers: { expect: "100-continue", "x-api-key": "large" },
        body: "a=1",
      });
    const replies = [];
    for (let i = 0; i < 3; i++) replies.push((await post("127.0.0.9")).status);
    expect(replies).toEqual([200, 200, 429]);
  });

  test("dots in a path, which lead from the service's route to /healthz where they are resolved, are no way around", async () => {
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await get(site.port, "127.0.0.11", "/../../healthz")).status);
    // nginx refuses such a path itself.
    expect(statuses).toEqual(program === "nginx" ? [400, 400, 400, 400] : [200, 200, 200, 429]);
  });

  test("without the service no request passes", async () => {
    await service.end();
    const { status } = await get(site.port, "127.0.0.8");
    expect(status).toBeGreaterThanOrEqual(500);
  });
});

test("nginx: where one instance restarts after the other, no request fails", async () => {
  const trust = ["--trust-proxy", "127.0.0.1"];
  await using one = await serving(RULES, trust);
  await using two = await serving(RULES, trust);
  const nginx = PROXIES.find(({ program }) => program === "nginx") as (typeof PROXIES)[number];
  await using site = await proxied(nginx, one, [two]);
  const status = async (client: number) => (await get(site.port, `127.0.0.${client}`)).status;
  /** nginx calls the instances in turn. */
  const both = async (client: number) => [await status(client), await status(client)];
  const { port } = new URL(one.url);
  await one.end();
  expect(await both(20)).toEqual([200, 200]);
  await using again = await serving(RULES, [...trust, "--port", port]);
  // nginx's `fail_timeout`, which it counts in whole seconds.
  await sleep(2000);
  expect(await both(21)).toEqual([200, 200]);
  await two.end();
  expect(await both(22)).toEqual([200, 200]);
  expect(new URL(again.url).port).toBe(port);
});

test("envoy, by its rate limit protocol: a client has its own limit, what the service answers is passed on, and without it no request passes", async () => {
  const rules: PolicyDocument = { rules: [{ name: "api", limit_keys: ["ip:address"], ...bucket(3) }] };
  await using service = await serving(rules, ["--grpc-port", "0"]);
  await using site = await proxied(ENVOY_RATE_LIMIT, service);
  const replies = [];
  for (let i = 0; i < 4; i++) {
    const { status, headers } = await get(site.port, "127.0.0.2", "/", {
      headers: { "x-forwarded-for": `192.0.2.${i}` },
    });
    replies.push([status, headers["ratelimit"], headers["ratelimit-policy"]]);
  }
  const fields = (left: number) => [expect.stringMatching(new RegExp(`^"api";r=${left};t=\\d+$`)), '"api";q=3;w=10800'];
  expect(replies).toEqual([...[2, 1, 0].map((left) => [200, ...fields(left)]), [429, ...fields(0)]]);
  expect((await get(site.port, "127.0.0.3")).status).toBe(200);
  await service.end();
  expect((await get(site.port, "127.0.0.4")).status).toBe(500);
});

describe("forward auth", () => {
  const at = async (service: Served, path: string, headers: Record<string, string>): Promise<number> =>
    (await service.request(path, { headers })).status;

  test("the routes do not exist without --trust-proxy", async () => {
    await using service = await serving(RULES);
    for (const path of ["/v1/forward-auth", "/v1/forward-auth/x", "/v1/auth-request"]) {
      expect(await at(service, path, { "x-forwarded-for": "192.0.2.1" })).toBe(404);
    }
  });

  test("a peer that is no trusted proxy is refused", async () => {
    await using service = await serving(RULES, ["--trust-proxy", "10.0.0.0/8,2001:db8::/32"]);
    const { status, body } = await service.request("/v1/forward-auth", { headers: { "x-forwarded-for": "192.0.2.1" } });
    expect([status, body.detail]).toEqual([403, "The peer 127.0.0.1 is none of the proxies of --trust-proxy."]);
  });

  test("a proxy that states no client is answered with the mistake: its clients would share one limit", async () => {
    await using service = await serving(RULES, ["--trust-proxy", "127.0.0.0/8"]);
    const stated = async (client: string | undefined) => {
      const headers = { "x-forwarded-uri": "/", ...(client !== undefined && { "x-forwarded-for": client }) };
      const { status, body } = await service.request("/v1/forward-auth", { headers });
      return [status, body?.field, body?.value];
    };
    // nginx states `unix:` for the client of a Unix socket.
    for (const client of [undefined, "", "nope", "unix:", "192.0.2.1, unknown", "192.0.2.1, 10.0.0.0/8"]) {
      expect(await stated(client)).toEqual([400, "x-forwarded-for", client]);
    }
    expect(await stated("nope, 192.0.2.1")).toEqual([200, undefined, undefined]);
    await using single = await serving(RULES, ["--trust-proxy", "1", "--client-header", "x-real-ip"]);
    const headers = { "x-forwarded-uri": "/", "x-real-ip": "nope" };
    const { status, body } = await single.request("/v1/forward-auth", { headers });
    const detail =
      '`x-real-ip` must be the client\'s address, set by the proxy, because a rule reads ip:address; got "nope"';
    expect([status, body.detail]).toEqual([400, expect.stringContaining(detail)]);
  });

  test("a request with two X-Forwarded-Uri is that of neither: whichever the server reads, no client takes from another", async () => {
    await using service = await serving(RULES, ["--trust-proxy", "1"]);
    const { hostname, port } = new URL(service.url);
    const both = (...uris: string[]): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const headers = { "x-forwarded-for": "192.0.2.4", "x-forwarded-uri": uris };
        const request = send({ hostname, port, path: "/v1/forward-auth", headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        request.on("error", reject).end();
      });
    const [a, b] = ["a", "b"].map((user) => `/?scarce=1&user=${user}`) as [string, string];
    expect(await both(a, b)).toBe(200);
    expect([await both(a), await both(b)]).toEqual([200, 200]);
  });

  test("a path with dots behind the service's own is the original's: no client reaches another route, such as /healthz", async () => {
    await using service = await serving(RULES, ["--trust-proxy", "1"]);
    const { hostname, port } = new URL(service.url);
    // Not by `fetch`, which resolves the dots.
    const asIs = (path: string): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const headers = { "x-forwarded-for": "192.0.2.3" };
        send({ hostname, port, path: `/v1/forward-auth${path}`, headers }, (response) => {
          response.resume().on("end", () => resolve(response.statusCode));
        })
          .on("error", reject)
          .end();
      });
    const paths = ["/../../healthz", "/%2e%2e/%2e%2e/metrics", "/a/../../b", "/c"];
    const statuses = [];
    for (const path of paths) statuses.push(await asIs(path));
    expect(statuses).toEqual([200, 200, 200, 429]);
  });

  test("a client's many headers do not push out those of the proxy, which avoided the rules that read these", async () => {
    await using service = await serving({ rules: RULES.rules.slice(2) }, ["--trust-proxy", "1"]);
    const many = Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`a${i}`, ""]));
    // Caddy and Traefik send headers by their names.
    const headers = { ...many, "x-api-key": "k", "x-forwarded-for": "192.0.2.1", "x-forwarded-method": "POST" };
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push(await at(service, "/v1/forward-auth", headers));
    expect(statuses).toEqual([200, 200, 429]);
  });

  test("a client that repeats a header, of which many servers read the first or the last, has no limit of its own for each text", async () => {
    await using service = await serving({ rules: RULES.rules.slice(2) }, ["--trust-proxy", "1"]);
    const { hostname, port } = new URL(service.url);
    const posts = (...keys: string[]): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        // Not by `fetch`, which joins them.
        const headers = { "x-forwarded-for": "192.0.2.1", "x-forwarded-method": "POST", "x-api-key": keys };
        send({ hostname, port, path: "/v1/forward-auth", headers }, (response) => {
          response.resume().on("end", () => resolve(response.statusCode));
        })
          .on("error", reject)
          .end();
      });
    expect([await posts("k", "1"), await posts("k", "2"), await posts("3", "k")]).toEqual([200, 200, 429]);
    expect([await posts("k"), await posts("other")]).toEqual([200, 200]);
  });

  test("--client-header reads a platform's header in place of X-Forwarded-For", async () => {
    await using service = await serving(RULES, ["--trust-proxy", "127.0.0.0/8", "--client-header", "CF-Connecting-IP"]);
    const headers = { "cf-connecting-ip": "192.0.2.9", "x-forwarded-for": "198.51.100.9" };
    expect(await at(service, "/v1/forward-auth", headers)).toBe(200);
    const { body } = await service.post("/v1/check", { name: "api", key: "192.0.2.9", count: 0 });
    expect(body.remaining).toBe(2);
  });
});
