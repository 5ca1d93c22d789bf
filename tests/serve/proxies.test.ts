/** Real proxies in front of the service, with the configurations of the guide; and what the others send, as they document it. */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, request as send, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PolicyDocument } from "tidegate/policies";
import { remove, temporaryFolder } from "../support/folders.ts";
import { freePort } from "../support/ports.ts";
import { type Running, start } from "../support/processes.ts";
import { root, type Served, serving } from "./service.ts";

const bucket = (capacity: number) =>
  ({ algorithm: "token_bucket", algorithm_config: { rate: 1, period: "1h", capacity } }) as const;

/** Three requests for each address, one for each user of the query, two POSTs. */
const RULES: PolicyDocument = {
  rules: [
    { name: "api", limit_keys: ["ip:address"], ...bucket(3) },
    { name: "user", match: { "query:scarce": "1" }, limit_keys: ["query:user"], ...bucket(1) },
    { name: "posts", match: { "header:x-forwarded-method": "POST" }, limit_keys: ["header:x-api-key"], ...bucket(2) },
  ],
};

interface Proxy {
  readonly program: string;
  /** The arguments that start it in the foreground. */
  readonly args: (folder: string) => string[];
  /** The files of `examples/serve`, the configuration first. */
  readonly files: readonly string[];
  readonly ready: RegExp;
}

const PROXIES: readonly Proxy[] = [
  {
    program: "nginx",
    args: (folder) => [
      "-p",
      folder,
      "-e",
      "stderr",
      "-c",
      "nginx.conf",
      "-g",
      `pid ${folder}/pid; daemon off; error_log stderr info;`,
    ],
    files: ["nginx.conf"],
    ready: /start worker process/,
  },
  {
    program: "caddy",
    args: () => ["run", "--config", "Caddyfile", "--adapter", "caddyfile"],
    files: ["Caddyfile"],
    ready: /serving initial configuration/,
  },
  {
    program: "haproxy",
    args: () => ["-W", "-db", "-f", "haproxy.cfg"],
    files: ["haproxy.cfg", "tidegate.lua"],
    ready: /Loading success/,
  },
];

interface Reply {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A request from one of the loopback's addresses, each a client of its own. */
function get(
  port: number,
  from: string,
  path = "/",
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Reply> {
  const { method = "GET", headers = {}, body } = options;
  return new Promise((resolve, reject) => {
    const sent = send(
      { host: "127.0.0.1", port, localAddress: from, path, method, headers, agent: false },
      (response) => {
        let text = "";
        response.on("data", (data) => {
          text += data;
        });
        response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: text }));
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

describe.each(PROXIES.map((proxy) => [proxy.program, proxy] as const))("%s", (_, { program, args, files, ready }) => {
  const folder = temporaryFolder(program);
  let service: Served;
  let app: Server;
  let running: Running;
  let port: number;
  const received: string[] = [];

  beforeAll(async () => {
    service = await serving(RULES, ["--trust-proxy", "127.0.0.1"]);
    app = createServer((request, response) => {
      received.push(`${request.method} ${request.url}`);
      request.resume().on("end", () => response.end("from the application"));
    }).listen(0, "127.0.0.1");
    await once(app, "listening");
    port = await freePort();
    for (const file of files) {
      const text = readFileSync(join(root, "examples/serve", file), "utf8")
        .replaceAll("127.0.0.1:8080", new URL(service.url).host)
        .replaceAll("127.0.0.1:3000", `127.0.0.1:${(app.address() as AddressInfo).port}`)
        .replaceAll(/(listen |:)8000/g, (_, before) => before + port);
      // Caddy's administration would take a fixed port.
      writeFileSync(join(folder, file), file === "Caddyfile" ? `{\n\tadmin off\n}\n${text}` : text);
    }
    const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
    running = await start(program, args(folder), ready, { cwd: folder, env });
  });
  afterAll(async () => {
    await running?.stop();
    await service?.[Symbol.asyncDispose]();
    app?.close();
    remove(folder);
  });

  test("passes on what is granted, with the fields, then answers 429 with the fields, itself", async () => {
    const replies = [];
    for (let i = 0; i < 4; i++) replies.push(await get(port, "127.0.0.2", `/page?i=${i}`));
    expect(replies.map(({ status, headers }) => [status, headers["ratelimit"]])).toEqual([
      [200, expect.stringMatching(/^"api";r=2;t=\d+$/)],
      [200, expect.stringMatching(/^"api";r=1;t=\d+$/)],
      [200, expect.stringMatching(/^"api";r=0;t=\d+$/)],
      [429, expect.stringMatching(/^"api";r=0;t=\d+$/)],
    ]);
    const [first, , , denied] = replies;
    expect([first?.body, first?.headers["ratelimit-policy"]]).toEqual(["from the application", '"api";q=3;w=10800']);
    expect(denied?.headers["ratelimit-policy"]).toBe('"api";q=3;w=10800');
    // Up to half of the wait is added, so that clients do not return together.
    const wait = Number(denied?.headers["retry-after"]);
    expect(wait).toBeGreaterThan(3500);
    expect(wait).toBeLessThanOrEqual(3630);
    expect(denied?.headers["content-type"]).toBe("application/problem+json");
    expect(JSON.parse(denied?.body ?? "")).toMatchObject({ title: "Quota exceeded", status: 429 });
    expect(received.filter((line) => line.startsWith("GET /page"))).toEqual([
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
      statuses.push((await get(port, "127.0.0.3", "/", { headers })).status);
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
    const { body } = await service.post("/v1/check", { name: "api", key: "198.51.100.0", count: 3 });
    expect(body.ok).toBe(true);
    const uri = { "X-Forwarded-Uri": "/?free=1", "X-Original-URI": "/?free=1" };
    const scarce = "/?scarce=1&user=spoof";
    const scarces = [];
    for (const from of ["127.0.0.4", "127.0.0.5"])
      scarces.push((await get(port, from, scarce, { headers: uri })).status);
    expect(scarces).toEqual([200, 429]);
  });

  test("rules read the original query, method and headers", async () => {
    const statuses = [];
    for (const user of ["a", "a", "b"]) statuses.push((await get(port, "127.0.0.6", `/?scarce=1&user=${user}`)).status);
    expect(statuses).toEqual([200, 429, 200]);
    const post = (key: string) =>
      get(port, "127.0.0.7", "/form", {
        method: "POST",
        headers: { "x-api-key": key, "x-forwarded-method": "GET" },
        body: "a=1",
      });
    const posts = [];
    for (const key of ["k", "k", "k"]) posts.push((await post(key)).status);
    expect(posts).toEqual([200, 200, 429]);
    expect(received.filter((line) => line === "POST /form")).toHaveLength(2);
  });

  test("a large body, which clients such as curl announce with Expect: 100-continue", async () => {
    const post = (from: string) =>
      get(port, from, "/large", {
        method: "POST",
        headers: { expect: "100-continue", "x-api-key": "large" },
        body: "a=1",
      });
    const replies = [];
    for (let i = 0; i < 3; i++) replies.push((await post("127.0.0.9")).status);
    expect(replies).toEqual([200, 200, 429]);
  });

  test("without the service no request passes", async () => {
    await service.end();
    const { status } = await get(port, "127.0.0.8");
    expect(status).toBeGreaterThanOrEqual(500);
  });
});

describe("forward auth", () => {
  const at = async (service: Served, path: string, headers: Record<string, string>, method = "GET"): Promise<number> =>
    (await service.request(path, { method, headers })).status;

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
    await using service = await serving(RULES, ["--trust-proxy", "1"]);
    const { status, body } = await service.request("/v1/forward-auth", { headers: { "x-forwarded-uri": "/" } });
    expect([status, body.field]).toEqual([400, "x-forwarded-for"]);
  });

  test("Traefik ForwardAuth and Envoy ext_authz, as they document their requests", async () => {
    await using service = await serving(RULES, ["--trust-proxy", "1"]);
    const traefik = {
      "x-forwarded-method": "POST",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "example.org",
      "x-forwarded-uri": "/form?scarce=1&user=t",
      "x-forwarded-for": "192.0.2.1",
    };
    expect([await at(service, "/v1/forward-auth", traefik), await at(service, "/v1/forward-auth", traefik)]).toEqual([
      200, 429,
    ]);
    // Envoy sends method and path as they are, and appends the client to what the client wrote.
    const envoy = { "x-forwarded-for": "198.51.100.7,192.0.2.2", "x-api-key": "e", "x-forwarded-uri": "/?free=1" };
    const path = "/v1/forward-auth/form?scarce=1&user=e";
    expect([await at(service, path, envoy, "POST"), await at(service, path, envoy, "POST")]).toEqual([200, 429]);
    const left = async (name: string, key: string) =>
      (await service.post("/v1/check", { name, key, count: 0 })).body.remaining;
    expect([await left("api", "192.0.2.2"), await left("posts", "e")]).toEqual([2, 1]);
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

  test("--client-header reads a platform's header in place of X-Forwarded-For", async () => {
    await using service = await serving(RULES, ["--trust-proxy", "127.0.0.0/8", "--client-header", "CF-Connecting-IP"]);
    const headers = { "cf-connecting-ip": "192.0.2.9", "x-forwarded-for": "198.51.100.9" };
    expect(await at(service, "/v1/forward-auth", headers)).toBe(200);
    const { body } = await service.post("/v1/check", { name: "api", key: "192.0.2.9", count: 0 });
    expect(body.remaining).toBe(2);
  });
});
