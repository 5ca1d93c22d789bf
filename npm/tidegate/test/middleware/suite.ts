import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { parseList } from "structured-headers";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Config, defineLimits, type Decision, type Limiter, MINUTE, SECOND } from "../../src/index.ts";
import type { Store } from "../../src/stores/contract.ts";
import { later } from "./later.ts";
import { fakeClock } from "../../src/testing/clock.ts";
import type { GateOptions } from "../../src/middleware/gate.ts";

/** What a request of any framework is asked here. */
export interface Seen {
  header(name: string): string | undefined;
}

/** The options of a middleware, where requests are what {@link Seen} tells. */
export type SuiteOptions = GateOptions<Seen> & {
  name?: unknown;
  key?: unknown;
  cost?: unknown;
  config?: unknown;
  limits?: unknown;
  /** The text and status of a custom response. */
  custom?: { status: number; text: string };
};

export interface Serving {
  readonly url: string;
  close(): Promise<unknown> | unknown;
}

/**
 * Serves `GET /` behind the middleware, once per element of `options`, outermost first. It answers `?status=` (default 200)
 * with the JSON of the decision that it sees; `?throw` throws; `?hang` never answers.
 */
export type Serve = (limiter: Limiter<string, Store>, options: readonly SuiteOptions[]) => Promise<Serving>;

const POLICY: Config = { kind: "token bucket", rate: 1, period: MINUTE, capacity: 5 };

/** The contract of a middleware; each framework's test is a caller. */
export function middlewareSuite(name: string, serve: Serve): void {
  const open: Serving[] = [];
  afterEach(async () => {
    for (const server of open.splice(0)) await server.close();
  });

  async function start(
    options: SuiteOptions | readonly SuiteOptions[],
    policies: Record<string, Config> = { api: POLICY },
    store?: Store,
  ) {
    const clock = fakeClock();
    const limits = defineLimits(policies, {
      now: clock.now,
      ...(store === undefined ? {} : { store }),
    }) as unknown as Limiter<string, Store>;
    const server = await serve(limits, [options].flat());
    open.push(server);
    const get = (path = "/", headers: Record<string, string> = {}) => fetch(server.url + path, { headers });
    const left = async (limit = "api", key: string | undefined = "127.0.0.1") =>
      (await limits.getValue(limit, key === undefined ? {} : { key })).value;
    return { clock, limits, server, get, left };
  }

  describe(name, () => {
    test("grants what is there, then denies with 429, fields that parse, and a problem", async () => {
      const { get, clock } = await start({ name: "api", jitter: 0 });
      for (let left = 4; left >= 0; left--) {
        const granted = await get();
        expect(granted.status).toBe(200);
        const [[item, parameters]] = parseList(granted.headers.get("ratelimit") ?? "") as never as [
          [string, Map<string, number>],
        ];
        expect([item, parameters.get("r")]).toEqual(["api", left]);
        expect(granted.headers.get("retry-after")).toBeNull();
        expect(((await granted.json()) as Decision).remaining).toBe(left);
      }
      clock.advance(500);
      const denied = await get();
      expect(denied.status).toBe(429);
      expect(denied.headers.get("retry-after")).toBe("60");
      expect(denied.headers.get("ratelimit-policy")).toBe('"api";q=5;w=300');
      expect(denied.headers.get("content-type")).toMatch(/^application\/problem\+json/);
      expect(await denied.json()).toMatchObject({ status: 429, title: "Quota exceeded", "violated-policies": ["api"] });
      clock.advance(60 * SECOND);
      expect((await get()).status).toBe(200);
    });

    test("the same with a store that answers with promises", async () => {
      const { get } = await start({ name: "api" }, { api: POLICY }, later());
      const statuses = [];
      for (let i = 0; i < 7; i++) statuses.push((await get()).status);
      expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429]);
    });

    test("a store that is down: 503 by default, 200 where the limiter says allow", async () => {
      const down = {
        name: "down",
        sync: false,
        decide: async () => Promise.reject(new Error("gone")),
        decideAll: async () => Promise.reject(new Error("gone")),
      };
      const deny = await start({ name: "api" }, { api: POLICY }, down as never);
      expect((await deny.get()).status).toBe(503);
      const allow = await start({ name: "api" }, { api: { ...POLICY, onStoreError: "allow" } }, down as never);
      expect((await allow.get()).status).toBe(200);
    });

    test("what asks for more than the limit ever grants gets 400 and no Retry-After", async () => {
      const { get } = await start({ name: "api", cost: 6 });
      const { status, headers } = await get();
      expect([status, headers.get("retry-after")]).toEqual([400, null]);
    });

    test("a key of one's own; the address where there is none; one limit for all with false", async () => {
      const own = await start({ name: "api", key: (request: Seen) => request.header("x-user"), cost: 5 });
      expect((await own.get("/", { "x-user": "a" })).status).toBe(200);
      expect((await own.get("/", { "x-user": "b" })).status).toBe(200);
      expect((await own.get("/", { "x-user": "a" })).status).toBe(429);
      expect((await own.get("/")).status).toBe(200);
      expect(await own.left()).toBe(0);
      const shared = await start({ name: "api", key: false });
      await shared.get();
      expect((await shared.limits.getValue("api")).value).toBe(4);
    });

    test("a key that only a promise tells, and an overlong one", async () => {
      const { get } = await start({ name: "api", cost: 5, key: async (request: Seen) => request.header("x-user") });
      const long = "u".repeat(7000);
      expect((await get("/", { "x-user": `${long}1` })).status).toBe(200);
      expect((await get("/", { "x-user": `${long}2` })).status).toBe(200);
      expect((await get("/", { "x-user": `${long}1` })).status).toBe(429);
    });

    test("no header of the client's changes its key, and rotating the left of a trusted one does not either", async () => {
      const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
      const plain = await start({ name: "api" });
      for (let i = 0; i < 5; i++)
        await plain.get("/", { "x-forwarded-for": `10.0.0.${i}`, forwarded: `for=10.0.0.${i}` });
      expect((await plain.get("/", { "x-forwarded-for": "10.9.9.9", "x-real-ip": "10.9.9.9" })).status).toBe(429);
      expect(warned.mock.calls.filter(([text]) => String(text).includes("trust: 1")).length).toBe(1);
      warned.mockRestore();
      const proxied = await start({ name: "api", client: { trust: 1 } });
      for (let i = 0; i < 5; i++) await proxied.get("/", { "x-forwarded-for": `10.0.0.${i}, 192.0.2.7` });
      expect((await proxied.get("/", { "x-forwarded-for": "__proto__, 192.0.2.7" })).status).toBe(429);
      expect((await proxied.get("/", { "x-forwarded-for": "192.0.2.7, 192.0.2.8" })).status).toBe(200);
    });

    test("a cost that the client states is held in bounds; what is no plain number costs the default", async () => {
      const wide: Config = { kind: "token bucket", rate: 1, period: MINUTE, capacity: 1e6 };
      const cost = { header: "x-cost", default: 2, min: 1, max: 10 };
      const { get, left } = await start({ name: "api", cost }, { api: wide });
      const taken = async (text: string) => {
        const before = await left();
        expect((await get("/", { "x-cost": text })).status).toBe(200);
        return before - (await left());
      };
      const hostile = ["-1", "NaN", "1e308", "Infinity", "0x10", "", "  ", "1,1", "__proto__", "9".repeat(3000)];
      for (const text of hostile) expect(await taken(text), text).toBe(2);
      expect([await taken("5"), await taken("0"), await taken("11"), await taken("99999999999999999999")]).toEqual([
        5, 1, 10, 10,
      ]);
      const query = await start({ name: "api", cost: { query: "n", max: 10 } }, { api: wide });
      for (const path of ["/?n=-5", "/?n=NaN", "/?n=4&n=1", "/?__proto__=5", "/?n[]=9", "/"]) await query.get(path);
      expect(await query.left()).toBe(1e6 - 6);
      await query.get("/?a=b&n=7");
      expect(await query.left()).toBe(1e6 - 13);
    });

    test("several limits: all are taken or none", async () => {
      const rules = [
        { name: "user", key: (request: Seen) => request.header("x-user") },
        { name: "all", key: false, cost: 2 },
      ];
      const two = { user: POLICY, all: { ...POLICY, capacity: 6 } } satisfies Record<string, Config>;
      const { get, left, limits } = await start({ limits: rules }, two);
      for (const user of ["a", "b", "c"]) expect((await get("/", { "x-user": user })).status).toBe(200);
      const denied = await get("/", { "x-user": "a" });
      expect(denied.status).toBe(429);
      expect(await denied.json()).toMatchObject({ "violated-policies": ["all"] });
      expect(denied.headers.get("ratelimit")).toMatch(/^"user";r=3;.*, "all";r=0;/);
      expect([await left("user", "a"), (await limits.getValue("all")).value]).toEqual([4, 0]);
    });

    test("rules of the request's own, a limit by name or by config, and what is skipped", async () => {
      const plans = { free: POLICY, pro: { ...POLICY, capacity: 50 } };
      const byName = await start(
        { name: (request: Seen) => (request.header("x-plan") === "pro" ? "pro" : "free"), cost: 4 },
        plans,
      );
      const names = async (plan: string) => (await byName.get("/", { "x-plan": plan })).headers.get("ratelimit");
      expect([await names("pro"), await names("__proto__")]).toEqual([
        expect.stringMatching(/^"pro";r=46;/),
        expect.stringMatching(/^"free";r=1;/),
      ]);
      const config = async (request: Seen): Promise<Config> => ({
        ...POLICY,
        capacity: Number(request.header("x-capacity")),
      });
      const inline = await start(
        { name: "inline", config, skip: (request: Seen) => request.header("x-skip") === "1" },
        {},
      );
      expect((await inline.get("/", { "x-capacity": "8" })).headers.get("ratelimit-policy")).toBe('"inline";q=8;w=480');
      expect((await inline.get("/", { "x-skip": "1" })).headers.get("ratelimit-policy")).toBeNull();
      const rules = (request: Seen) => [{ name: request.header("x-plan") ?? "free" }];
      const told = await start({ limits: rules }, plans);
      expect((await told.get("/", { "x-plan": "pro" })).headers.get("ratelimit")).toMatch(/^"pro";r=49;/);
    });

    test("a response of one's own keeps the fields", async () => {
      const { get } = await start({ name: "api", cost: 5, custom: { status: 420, text: "enhance your calm" } });
      await get();
      const denied = await get();
      expect(denied.status).toBe(420);
      expect(await denied.text()).toContain("enhance your calm");
      expect(Number(denied.headers.get("retry-after"))).toBeGreaterThanOrEqual(300);
    });

    test("Retry-After is spread, never early, and the same for the same client", async () => {
      const { get } = await start({ name: "api", key: (request: Seen) => request.header("x-user"), cost: 5 });
      const waits = new Set<number>();
      for (let user = 0; user < 8; user++) {
        const ask = () => get("/", { "x-user": `u${user}` });
        await ask();
        const [first, second] = [
          Number((await ask()).headers.get("retry-after")),
          Number((await ask()).headers.get("retry-after")),
        ];
        expect(first).toBe(second);
        expect(first).toBeGreaterThanOrEqual(300);
        expect(first).toBeLessThanOrEqual(450);
        waits.add(first);
      }
      expect(waits.size).toBeGreaterThan(4);
    });

    test("in shadow mode it decides and reports, and lets all pass without a field", async () => {
      const told: boolean[] = [];
      const { get } = await start({ name: "api", cost: 5, shadow: true, onDecision: ({ ok }) => void told.push(ok) });
      const [first, second] = [await get(), await get()];
      expect([first.status, second.status]).toEqual([200, 200]);
      expect(((await second.json()) as Decision).ok).toBe(false);
      expect([...second.headers.keys()].filter((field) => /ratelimit|retry/i.test(field))).toEqual([]);
      expect(told).toEqual([true, false]);
    });

    test("fields of other families, or none", async () => {
      const old = await start({ name: "api", headers: { fields: ["draft-6", "x-ratelimit"] } });
      const { headers } = await old.get();
      expect([headers.get("ratelimit-remaining"), headers.get("x-ratelimit-limit")]).toEqual(["4", "5"]);
      const none = await start({ name: "api", headers: false, cost: 5 });
      await none.get();
      const denied = await none.get();
      expect(denied.status).toBe(429);
      expect(denied.headers.get("ratelimit")).toBeNull();
    });

    test("two in a row append their fields", async () => {
      const policies = { a: POLICY, b: { ...POLICY, capacity: 9 } };
      const { get } = await start([{ name: "a" }, { name: "b" }], policies);
      expect((await get()).headers.get("ratelimit-policy")).toMatch(
        /^"(a";q=5;w=300, "b";q=9;w=540|b";q=9;w=540, "a";q=5;w=300)$/,
      );
    });

    test("after the response: refunds failures, charges measured use, and never what was denied", async () => {
      const settle: SuiteOptions["settle"] = ({ status }) => (status >= 500 ? 0 : status === 202 ? 4 : undefined);
      const { get, left } = await start({ name: "api", settle, cost: 2 });
      await get("/?status=500");
      await vi.waitFor(async () => expect(await left()).toBe(5));
      await get("/?status=202");
      await vi.waitFor(async () => expect(await left()).toBe(1));
      expect((await get("/?status=500")).status).toBe(429);
      await get("/?status=500");
      expect(await left()).toBe(1);
    });

    test("a handler that throws is refunded too", async () => {
      const statuses: number[] = [];
      const settle: SuiteOptions["settle"] = ({ status }) => {
        statuses.push(status);
        return status >= 500 ? 0 : undefined;
      };
      const { get, left } = await start({ name: "api", settle });
      expect((await get("/?throw")).status).toBe(500);
      await vi.waitFor(() => expect(statuses).toEqual([500]));
      await vi.waitFor(async () => expect(await left()).toBe(5));
    });

    test("a settlement that fails is reported, and harms nobody", async () => {
      const errors: unknown[] = [];
      const { get, left } = await start({
        name: "api",
        settle: () => Number.NaN,
        onError: (error) => void errors.push(error),
      });
      expect((await get()).status).toBe(200);
      await vi.waitFor(() => expect(String(errors[0])).toMatch(/`settle` must be tokens from 0 .* got NaN/));
      expect(await left()).toBe(4);
    });

    test("a function of the user's that throws, or rejects, fails that request alone", async () => {
      const logged = vi.spyOn(console, "error").mockImplementation(() => {});
      const key = (request: Seen) => {
        if (request.header("x-user") === "throws") throw new Error("no session");
        return request.header("x-user") === "rejects" ? Promise.reject(new Error("no session")) : "somebody";
      };
      const { get } = await start({ name: "api", key });
      expect((await get("/", { "x-user": "throws" })).status).toBe(500);
      expect((await get("/", { "x-user": "rejects" })).status).toBe(500);
      expect((await get()).status).toBe(200);
      logged.mockRestore();
    });

    test("repeated and huge headers, and a pipelined flood, are limited like anything else", async () => {
      const { server, get, left } = await start({
        name: "api",
        cost: { header: "x-cost", max: 5 },
        client: { trust: 1 },
      });
      const { port } = new URL(server.url);
      const status = await new Promise<number | string>((done) => {
        const sent = httpRequest(
          { port, headers: { "x-cost": ["5", "1"], "x-forwarded-for": ["192.0.2.1", "192.0.2.2"] } },
          (response) => {
            response.resume();
            done(response.statusCode ?? 0);
          },
        );
        sent.on("error", (error) => done(String(error))).end();
      });
      expect(status).toBe(200);
      expect(await left("api", "192.0.2.2")).toBe(4);
      // A megabyte is more than Node.js reads of headers: it never gets here.
      const huge = await new Promise<string>((done) => {
        const socket = connect(Number(port), "127.0.0.1", () =>
          socket.write(`GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${"1,".repeat(2 ** 19)}\r\n\r\n`),
        );
        let text = "";
        socket
          .on("data", (chunk) => (text += chunk))
          .on("close", () => done(text))
          .on("error", () => done(text));
      });
      expect(huge).toMatch(/^(HTTP\/1.1 431 .*[\s\S]*)?$/);
      const flood = await new Promise<string>((done) => {
        const one = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        const last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        const socket = connect(Number(port), "127.0.0.1", () => socket.write(one.repeat(99) + last));
        let text = "";
        socket
          .on("data", (chunk) => (text += chunk))
          .on("close", () => done(text))
          .on("error", () => done(text));
      });
      expect(flood.match(/HTTP\/1.1 200/g)?.length).toBe(5);
      expect(flood.match(/HTTP\/1.1 429/g)?.length).toBe(95);
      expect((await get()).status).toBe(429);
      expect(Object.keys(Object.prototype)).toEqual([]);
    });

    test("a client that goes away is refunded", async () => {
      const ends: boolean[] = [];
      const settle: SuiteOptions["settle"] = ({ aborted }) => {
        ends.push(aborted);
        return aborted ? 0 : undefined;
      };
      const { server, left } = await start({ name: "api", settle });
      const controller = new AbortController();
      const hanging = fetch(`${server.url}/?hang`, { signal: controller.signal }).catch(() => "gone");
      await vi.waitFor(async () => expect(await left()).toBe(4));
      controller.abort();
      expect(await hanging).toBe("gone");
      await vi.waitFor(() => expect(ends).toEqual([true]));
      await vi.waitFor(async () => expect(await left()).toBe(5));
    });
  });
}
