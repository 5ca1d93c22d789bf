/** Envoy's rate limit protocol, by a client of @grpc/grpc-js that loads the protocol's own description. */
import { once } from "node:events";
import { connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { PolicyDocument } from "tidegate/policies";
import { serveGrpc } from "../../npm/tidegate-serve/src/grpc.ts";
import { UNITS } from "../../npm/tidegate-serve/src/rls.ts";
import { bucket, root, type Served, serving } from "./service.ts";

const types = new protobuf.Root().loadSync(`${root}/tests/serve/rls.proto`, { keepCase: true });
const [Request, Response] = ["RateLimitRequest", "RateLimitResponse"].map((name) => types.lookupType(name)) as [
  protobuf.Type,
  protobuf.Type,
];
const PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

const numbers = (rate: number, period: "1s" | "1m") =>
  ({ algorithm: "token_bucket", algorithm_config: { rate, period } }) as const;
const RULES: PolicyDocument = {
  rules: [
    { name: "client", limit_keys: ["ip:address"], ...bucket(3) },
    { name: "slow", match: { "header:generic_key": "slow" }, limit_keys: [], ...bucket(2, "90m") },
    {
      name: "key",
      match: { "jwt:plan": "free", "header:domain": "shop" },
      limit_keys: ["header:X-Api-Key"],
      ...bucket(10, "1m"),
    },
    { name: "wide", match: { "header:pair": "on" }, limit_keys: ["ip:address"], ...bucket(5) },
    { name: "late", match: { "header:late": "on" }, limit_keys: ["ip:address"], ...bucket(3, "90m") },
    { name: "trial", match: { "header:trial": "on" }, limit_keys: [], shadow: true, ...bucket(1) },
    { name: "org", match: { "header:orgs": "on" }, limit_keys: ["jwt:Org"], ...bucket(4) },
    { name: "half", match: { "header:size": "half" }, limit_keys: [], ...numbers(1.5, "1m") },
    { name: "huge", match: { "header:size": "huge" }, limit_keys: [], ...numbers(2 ** 33, "1s") },
  ],
};

type Entries = Readonly<Record<string, string>>;
interface Descriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  readonly hits_addend?: { readonly value: number };
  readonly is_negative_hits?: boolean;
}
interface Limited {
  readonly overall_code: string;
  readonly statuses: readonly {
    readonly code: string;
    readonly limit_remaining: number;
    readonly current_limit: object | null;
    readonly duration_until_reset: { readonly seconds: number; readonly nanos: number } | null;
  }[];
  readonly response_headers_to_add: readonly { readonly key: string; readonly value: string }[];
}

let service: Served;
let client: Client;
beforeAll(async () => {
  service = await serving(RULES, ["--grpc-port", "0"]);
  client = new Client(`127.0.0.1:${service.log()[0]?.["grpcPort"]}`, credentials.createInsecure());
});
afterAll(async () => {
  client.close();
  await service[Symbol.asyncDispose]();
});

const of = (entries: Entries): Descriptor => ({
  entries: Object.entries(entries).map(([key, value]) => ({ key, value })),
});
const call = (
  request: { domain?: string; descriptors: readonly Descriptor[]; hits_addend?: number },
  by = client,
): Promise<Limited> => callWith(encoded(request), by);
const encoded = (request: object): Buffer =>
  Buffer.from(Request.encode(Request.fromObject({ domain: "envoy", ...request })).finish());
const callWith = (message: Buffer, by = client): Promise<Limited> =>
  new Promise((resolve, reject) => {
    const options = { enums: String, longs: Number, defaults: true };
    const decode = (bytes: Buffer) => Response.toObject(Response.decode(bytes), options);
    const answered = (error: ServiceError | null, response?: object) =>
      error === null ? resolve(response as Limited) : reject(error);
    by.makeUnaryRequest(PATH, (bytes: Buffer) => bytes, decode, message, answered);
  });
const codes = ({ overall_code, statuses }: Limited) => [overall_code, ...statuses.map(({ code }) => code)];

test("a descriptor with remote_address is limited as that client is over HTTP", async () => {
  const descriptors = [of({ remote_address: "192.0.2.1" })];
  const first = await call({ descriptors });
  expect(first).toMatchObject({
    overall_code: "OK",
    statuses: [
      { code: "OK", limit_remaining: 2, current_limit: { name: "client", requests_per_unit: 1, unit: "HOUR" } },
    ],
  });
  expect(first.response_headers_to_add).toContainEqual({ key: "RateLimit-Policy", value: '"client";q=3;w=10800' });
  await service.post("/v1/decide", { name: "client", key: "192.0.2.1", count: 2 });
  const denied = await call({ descriptors });
  expect(codes(denied)).toEqual(["OVER_LIMIT", "OVER_LIMIT"]);
  const { seconds = 0, nanos = 0 } = denied.statuses[0]?.duration_until_reset ?? {};
  // Until the next token, and not until all three.
  expect(seconds).toBeGreaterThan(3000);
  expect(seconds).toBeLessThanOrEqual(3600);
  expect(nanos % 1e6).toBe(0);
  expect(denied.response_headers_to_add.map(({ key }) => key)).toContain("Retry-After");
});

test("the status of a descriptor is that of its tightest limit: one that denies, or that has the fewest left", async () => {
  const both = of({ remote_address: "192.0.2.11", pair: "on" });
  expect((await call({ descriptors: [both] })).statuses[0]).toMatchObject({
    code: "OK",
    limit_remaining: 2,
    current_limit: { name: "client" },
  });
  // It has more left than the other would.
  expect((await call({ descriptors: [both], hits_addend: 3 })).statuses[0]).toMatchObject({
    code: "OVER_LIMIT",
    limit_remaining: 2,
    current_limit: { name: "client" },
  });
  // That limit is the second.
  await service.post("/v1/decide", { name: "late", key: "192.0.2.14" });
  const late = of({ remote_address: "192.0.2.14", late: "on" });
  expect((await call({ descriptors: [late] })).statuses[0]).toMatchObject({ code: "OK", limit_remaining: 1 });
  expect((await call({ descriptors: [late], hits_addend: 2 })).statuses[0]?.code).toBe("OVER_LIMIT");
});

test("of two limits that both deny, or leave as much, the status is of the one that takes longer", async () => {
  const both = of({ remote_address: "192.0.2.13", late: "on" });
  const secondsOf = async (hits_addend: number) =>
    (await call({ descriptors: [both], hits_addend })).statuses[0]?.duration_until_reset?.seconds;
  // Until three tokens are back, then until one is: in 1.5 h each, and those of the other limit in an hour.
  expect(await secondsOf(3)).toBeGreaterThan(3 * 5000);
  expect(await secondsOf(1)).toBeGreaterThan(5000);
});

test("a rule in shadow mode denies nothing, and is in no status", async () => {
  for (let i = 0; i < 2; i++) {
    expect(await call({ descriptors: [of({ trial: "on" })] })).toMatchObject({
      overall_code: "OK",
      statuses: [{ code: "OK", limit_remaining: 0, current_limit: null, duration_until_reset: null }],
    });
  }
});

test("numbers that the protocol does not have are left out, or the most that it has", async () => {
  // What is left has other low 32 bits than the most.
  const sizes = [of({ size: "half" }), { ...of({ size: "huge" }), hits_addend: { value: 5 } }];
  expect((await call({ descriptors: sizes })).statuses).toMatchObject([
    { code: "OK", limit_remaining: 0, current_limit: null },
    { code: "OK", limit_remaining: 2 ** 32 - 1, current_limit: null },
  ]);
});

test("hits_addend is the cost, and that of a descriptor goes before that of the request", async () => {
  const one = of({ remote_address: "192.0.2.2" });
  expect(codes(await call({ descriptors: [one], hits_addend: 4 }))).toEqual(["OVER_LIMIT", "OVER_LIMIT"]);
  expect((await call({ descriptors: [one], hits_addend: 2 })).statuses[0]?.limit_remaining).toBe(1);
  const own = { ...one, hits_addend: { value: 1 } };
  expect((await call({ descriptors: [own], hits_addend: 3 })).statuses[0]?.limit_remaining).toBe(0);
  // The most that a limiter counts is no mistake.
  const most = { ...one, hits_addend: { value: 2 ** 40 } };
  expect(codes(await call({ descriptors: [most] }))).toEqual(["OVER_LIMIT", "OVER_LIMIT"]);
});

test("negative hits are given back, up to the capacity, whatever the other descriptors take", async () => {
  const client = of({ remote_address: "192.0.2.9" });
  const refund = { ...client, hits_addend: { value: 2 }, is_negative_hits: true };
  await call({ descriptors: [{ ...client, hits_addend: { value: 3 } }] });
  expect(await call({ descriptors: [refund] })).toMatchObject({
    overall_code: "OK",
    statuses: [{ code: "OK", limit_remaining: 2 }],
    response_headers_to_add: [],
  });
  const slow = { ...of({ generic_key: "slow" }), hits_addend: { value: 99 } };
  expect(codes(await call({ descriptors: [slow, refund] }))).toEqual(["OVER_LIMIT", "OVER_LIMIT", "OK"]);
  expect(await call({ descriptors: [client] })).toMatchObject({ statuses: [{ limit_remaining: 2 }] });
});

test("a mistake is named, and takes nothing", async () => {
  const client = of({ remote_address: "192.0.2.10" });
  const wrong: [Descriptor, string][] = [
    [
      of({ remote_address: "nope" }),
      '`remote_address` must be an IP address, because a rule reads ip:address; got "nope"',
    ],
    [of({ remote_address: "" }), "`remote_address` must be an IP address"],
    [of({ "ip:address": "nope" }), "`ip:address` must be an IP address"],
    [
      { ...client, hits_addend: { value: 2 ** 41 } },
      "`hits_addend` must be a number of tokens from 0 to 1099511627776; got 2199023255552",
    ],
  ];
  for (const [descriptor, details] of wrong) {
    await expect(call({ descriptors: [client, descriptor] })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringContaining(details),
    });
  }
  // An entry without a key, which Envoy does not send, is no key of a rule.
  expect(await call({ descriptors: [client, of({ "": "" })] })).toMatchObject({
    statuses: [{ limit_remaining: 2 }, {}],
  });
});

test("a defect is INTERNAL, and logged: it is no mistake of the request", async () => {
  const lines: object[] = [];
  const log = { info: () => {}, error: (event: string, fields?: object) => void lines.push({ event, ...fields }) };
  const select = () => {
    throw new TypeError("a defect");
  };
  const server = await serveGrpc({ select } as never, { host: "127.0.0.1", bodyLimit: 1000 }, 0, log);
  const other = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  const wanted = { code: status.INTERNAL, details: "a defect" };
  await expect(call({ descriptors: [of({ generic_key: "slow" })] }, other)).rejects.toMatchObject(wanted);
  expect(lines).toEqual([expect.objectContaining({ event: "request failed", cause: "a defect" })]);
  other.close();
  await server.close(60_000);
});

test("a request has at most 100 descriptors, and 64 KiB as a body over HTTP: the service decides nothing of a larger one", async () => {
  const client = of({ remote_address: "192.0.2.12" });
  const give = { ...client, is_negative_hits: true };
  expect(codes(await call({ descriptors: Array(100).fill(give) }))).toHaveLength(101);
  await expect(call({ descriptors: [client, ...Array(100).fill(give)] })).rejects.toMatchObject({
    code: status.INVALID_ARGUMENT,
    details: "`descriptors` must be at most 100 in one request; got 101 of them",
  });
  await expect(call({ descriptors: [of({ note: "x".repeat(2 ** 16) })] })).rejects.toMatchObject({
    code: status.RESOURCE_EXHAUSTED,
    details: expect.stringContaining("65536"),
  });
  expect(await call({ descriptors: [client] })).toMatchObject({ statuses: [{ limit_remaining: 2 }] });
});

test("each unit of a limit has the number of the protocol", () => {
  const { SECOND, MINUTE, HOUR, DAY } = types.lookupEnum("RateLimitResponse.RateLimit.Unit").values;
  expect(UNITS).toEqual({ 1000: SECOND, 60000: MINUTE, 3600000: HOUR, 86400000: DAY });
});

test("the limits of all descriptors are taken, or none", async () => {
  const descriptors = [of({ remote_address: "192.0.2.3" }), of({ generic_key: "slow" })];
  expect(codes(await call({ descriptors }))).toEqual(["OK", "OK", "OK"]);
  expect(codes(await call({ descriptors }))).toEqual(["OK", "OK", "OK"]);
  const denied = await call({ descriptors });
  expect(codes(denied)).toEqual(["OVER_LIMIT", "OK", "OVER_LIMIT"]);
  // 90 min are no unit of the protocol.
  expect(denied.statuses[1]?.current_limit).toBeNull();
  const { body } = await service.post("/v1/check", { name: "client", key: "192.0.2.3", count: 0 });
  expect(body.remaining).toBe(1);
});

test("entries are headers, parameters and claims by their prefix, and the domain is a header", async () => {
  const entries = { "header:x-api-key": "k1", "jwt:plan": "free" };
  expect((await call({ domain: "shop", descriptors: [of(entries)] })).statuses[0]).toMatchObject({
    current_limit: { name: "key", requests_per_unit: 1, unit: "MINUTE" },
  });
  expect((await call({ domain: "other", descriptors: [of(entries)] })).statuses[0]).toMatchObject({
    current_limit: null,
  });
  expect((await service.post("/v1/check", { name: "key", key: "k1", count: 0 })).body.value).toBeLessThan(10);
});

test("a client's header that is not UTF-8, which Envoy copies as it is, is the value that it is over HTTP", async () => {
  const sent = (value: string) => {
    const entries = { "header:x-api-key": "****", "jwt:plan": "free" };
    const message = encoded({ domain: "shop", descriptors: [of(entries)] });
    message.write(value, message.indexOf("****"), "latin1");
    return callWith(message);
  };
  for (const value of ["caf\xe9", "caf\xff"]) {
    expect((await sent(value)).statuses[0]).toMatchObject({ code: "OK", limit_remaining: 9 });
    expect((await service.post("/v1/check", { name: "key", key: value, count: 0 })).body.value).toBeLessThan(10);
  }
});

test("the names of claims are as they are written, and not those of headers, which have any case", async () => {
  const { statuses } = await call({
    descriptors: [of({ orgs: "on", "jwt:Org": "a" }), of({ orgs: "on", "jwt:org": "a" })],
  });
  expect(statuses).toMatchObject([{ current_limit: { name: "org" } }, { current_limit: null }]);
});

test("a descriptor that lacks a key of a rule is not limited by it", async () => {
  expect(
    await call({ descriptors: [of({ "jwt:plan": "free" }), of({ generic_key: "fast" })], domain: "shop" }),
  ).toMatchObject({
    overall_code: "OK",
    statuses: [{ code: "OK", current_limit: null }, { code: "OK" }],
    response_headers_to_add: [],
  });
});

test("listens on an IPv6 address, and a call that does not end is cut off with the service, which logs it", async () => {
  await using other = await serving(RULES, ["--host", "::1", "--grpc-port", "0", "--shutdown-timeout", "100ms"]);
  expect(other.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
  expect((await other.request("/healthz")).status).toBe(200);
  const session = connect(`http://[::1]:${other.log()[0]?.["grpcPort"]}`);
  session.on("error", () => {});
  await once(session, "connect"); // until then a ping ends at once
  const headers = { ":method": "POST", ":path": PATH, "content-type": "application/grpc", te: "trailers" };
  session.request(headers).on("error", () => {});
  // A ping precedes what waits to be sent: after the second one the server has the stream.
  for (let i = 0; i < 2; i++) await new Promise((answered) => session.ping(answered));
  expect(await other.end()).toBe(0);
  expect(other.log().at(-1)).toMatchObject({ event: "stopped", message: expect.stringContaining("cut off") });
  session.destroy();
});

test("a client that does not end its connection, as where its machine is gone, is cut off with the service", async () => {
  await using other = await serving(RULES, ["--grpc-port", "0", "--shutdown-timeout", "100ms"]);
  const port = other.log()[0]?.["grpcPort"] as number;
  const gone = connectSocket({ port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => {});
  await once(gone, "connect");
  const session = connect(`http://127.0.0.1:${port}`).on("error", () => {});
  // The server has accepted the connection before this one.
  await new Promise((answered) => session.ping(answered));
  expect(await other.end()).toBe(0);
  gone.destroy();
});

test("ends with the service", async () => {
  // No timer of the end is left.
  await using other = await serving(RULES, ["--grpc-port", "0", "--shutdown-timeout", "10m"]);
  const port = other.log()[0]?.["grpcPort"];
  expect(port).toEqual(expect.any(Number));
  expect(await other.end()).toBe(0);
});

test("one connection has at most 1,000 calls at a time, so that its messages take bounded memory", async () => {
  const session = connect(`http://127.0.0.1:${service.log()[0]?.["grpcPort"]}`).on("error", () => {});
  const [settings] = await once(session, "remoteSettings");
  session.destroy();
  expect(settings.maxConcurrentStreams).toBe(1000);
});

test("one address has at most 1,000 connections, idle ones included, so that a client cannot take all of the service's", async () => {
  const port = Number(service.log()[0]?.["grpcPort"]);
  // The client's own is one of them.
  await call({ descriptors: [of({ remote_address: "192.0.2.99" })] });
  let closed = 0;
  const sockets = Array.from({ length: 1000 }, () => connectSocket(port, "127.0.0.1").on("error", () => {}));
  for (const socket of sockets) socket.resume().on("close", () => closed++);
  await vi.waitFor(() => expect(closed).toBeGreaterThan(0), 10_000);
  await call({ descriptors: [of({ remote_address: "192.0.2.99" })] });
  const ended = sockets.map((socket) => socket.destroyed || once(socket.destroy(), "close"));
  await Promise.all(ended);
  // Those that have ended count no more, once the service has seen their ends.
  const other = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  await vi.waitFor(() => call({ descriptors: [of({ remote_address: "192.0.2.99" })] }, other), 10_000);
  other.close();
});
