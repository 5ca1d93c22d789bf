import type { Server } from "node:net";
import { parseList } from "structured-headers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type Config, defineLimits, type Decision, type Limiter, MINUTE, SECOND } from "../../src/index.ts";
import type { Store } from "../../src/stores/contract.ts";
import { behind } from "../behind.ts";
import { eventually } from "./eventually.ts";
import { later } from "./later.ts";
import { settling } from "./settling.ts";
import { fakeClock } from "../../src/testing/clock.ts";
import type { GateOptions, RequestDecision } from "../../src/middleware/options.ts";

/** What the suite's options read of a request of any framework. */
export interface SuiteRequest {
  header(name: string): string | undefined;
}

/** What `denied` answers with. */
export interface Custom {
  readonly status: number;
  readonly text: string;
}

/** The options of a middleware, whose functions take {@link SuiteRequest}. */
export type SuiteOptions = GateOptions<SuiteRequest, never> & {
  name?: unknown;
  key?: unknown;
  count?: unknown;
  config?: unknown;
  limits?: unknown;
  /** What `denied` answers with; or it rejects. */
  custom?: Custom | "rejects";
  /** Mounts the one instance in two places on the way to the handler. */
  twice?: boolean;
};

export interface Serving {
  readonly url: string;
  readonly server: Server;
  close(): Promise<unknown> | unknown;
}

/**
 * Serves `GET /` behind the middleware, once per element of `options`, outermost first. It answers `?status=` (default 200)
 * with the JSON of the decision that it sees; `?throw` throws; `?hang` never answers.
 */
export type Serve = (limiter: Limiter<string, Store>, options: readonly SuiteOptions[]) => Promise<Serving>;

/** Serves limits by these options. `left` is the value of a limit and key. */
export type Start = (
  options: SuiteOptions | readonly SuiteOptions[],
  policies?: Record<string, Config>,
  store?: Store,
) => Promise<{
  clock: ReturnType<typeof fakeClock>;
  limits: Limiter<string, Store>;
  server: Serving;
  get(path?: string, headers?: Record<string, string>): Promise<Response>;
  left(limit?: string, key?: string): Promise<number>;
}>;

const POLICY: Config = { kind: "token bucket", rate: 1, period: MINUTE, capacity: 5 };

/**
 * The contract of a middleware; each framework's test is a caller. A middleware that `wraps` a handler has one place;
 * one that requires `client` never `warns` of a header that it does not read.
 */
export function middlewareSuite(name: string, serve: Serve, { wraps = false, warns = true } = {}): void {
  const start: Start = async (options, policies = { api: POLICY }, store) => {
    const clock = fakeClock();
    const limits = defineLimits(policies, {
      now: clock.now,
      ...(store === undefined ? {} : { store }),
    }) as unknown as Limiter<string, Store>;
    const server = await serve(limits, [options].flat());
    onTestFinished(async () => void (await server.close()));
    const get = (path = "/", headers: Record<string, string> = {}) => fetch(server.url + path, { headers });
    const left = async (limit = "api", key: string | undefined = "127.0.0.1") =>
      (await limits.getValue(limit, key === undefined ? {} : { key })).value;
    return { clock, limits, server, get, left };
  };

  describe(name, () => {
    test("grants the capacity, then denies with 429, fields that parse, and a problem", async () => {
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

    test("an asynchronous store gives the same statuses", async () => {
      const { get } = await start({ name: "api" }, { api: POLICY }, later());
      const statuses = [];
      for (let i = 0; i < 7; i++) statuses.push((await get()).status);
      expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429]);
    });

    test("a store that is down gives 503, or 200 with allow, degraded decisions, and one line in the log with the cause", async () => {
      const logged = vi.spyOn(console, "error").mockImplementation(() => {});
      const down = behind(() => Promise.reject(new Error("gone")), "down");
      const counted: unknown[] = [];
      const onDecision: SuiteOptions["onDecision"] = ({ degraded }) => void counted.push(degraded);
      const deny = await start({ name: "api", onDecision }, { api: POLICY }, down);
      for (let i = 0; i < 3; i++) expect((await deny.get()).status).toBe(503);
      expect(logged.mock.calls).toEqual([[expect.stringMatching(/^tidegate: down: /), new Error("gone")]]);
      expect(counted).toEqual([true, true, true]);
      const allow = await start({ name: "api" }, { api: { ...POLICY, onStoreError: "allow" } }, down);
      expect((await allow.get()).status).toBe(200);
    });

    test("a count above what the limit ever grants gets 400, or the status chosen for it, and no Retry-After", async () => {
      for (const [never, title] of [
        [400, "Bad Request"],
        [413, "Content Too Large"],
      ] as const) {
        const { get } = await start({ name: "api", count: 6, ...(never === 400 ? {} : { never }) });
        const answer = await get();
        expect([answer.status, answer.headers.get("retry-after")]).toEqual([never, null]);
        expect(await answer.json()).toMatchObject({ status: never, title });
      }
    });

    test("a request has the limit of its key, and with false all requests share one", async () => {
      const own = await start({
        name: "api",
        key: (request: SuiteRequest) => request.header("x-user") ?? "anonymous",
        count: 5,
      });
      expect((await own.get("/", { "x-user": "a" })).status).toBe(200);
      expect((await own.get("/", { "x-user": "b" })).status).toBe(200);
      expect((await own.get("/", { "x-user": "a" })).status).toBe(429);
      const shared = await start({ name: "api", key: false });
      await shared.get();
      expect((await shared.limits.getValue("api")).value).toBe(4);
    });

    test("a key function that returns undefined or an empty text fails the request, and takes nothing", async () => {
      vi.spyOn(console, "error").mockImplementation(() => {});
      const { get, left } = await start({ name: "api", key: (request: SuiteRequest) => request.header("x-user") });
      expect((await get("/")).status).toBe(500);
      expect((await get("/", { "x-user": "" })).status).toBe(500);
      expect(await left()).toBe(5);
    });

    test("a key function may return a promise, and a key longer than a store's", async () => {
      const { get } = await start({
        name: "api",
        count: 5,
        key: async (request: SuiteRequest) => request.header("x-user"),
      });
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
      expect(warned.mock.calls.filter(([text]) => String(text).includes("trust: 1")).length).toBe(warns ? 1 : 0);
      const proxied = await start({ name: "api", client: { trust: 1 } });
      for (let i = 0; i < 5; i++) await proxied.get("/", { "x-forwarded-for": `10.0.0.${i}, 192.0.2.7` });
      expect((await proxied.get("/", { "x-forwarded-for": "__proto__, 192.0.2.7" })).status).toBe(429);
      expect((await proxied.get("/", { "x-forwarded-for": "192.0.2.7, 192.0.2.8" })).status).toBe(200);
    });

    test("a count that the client states is clamped to bounds; what is no plain number counts as the default", async () => {
      const wide: Config = { kind: "token bucket", rate: 1, period: MINUTE, capacity: 1e6 };
      const count = { header: "x-count", default: 2, min: 1, max: 10 };
      const { get, left } = await start({ name: "api", count }, { api: wide });
      const taken = async (text: string) => {
        const before = await left();
        expect((await get("/", { "x-count": text })).status).toBe(200);
        return before - (await left());
      };
      const hostile = ["-1", "NaN", "1e308", "Infinity", "0x10", "", "  ", "1,1", "__proto__", "9".repeat(3000)];
      for (const text of hostile) expect(await taken(text), text).toBe(2);
      expect([await taken("5"), await taken("0"), await taken("11"), await taken("99999999999999999999")]).toEqual([
        5, 1, 10, 10,
      ]);
      const query = await start({ name: "api", count: { query: "n", max: 10 } }, { api: wide });
      for (const path of ["/?n=-5", "/?n=NaN", "/?n=NaN&n=-1", "/?__proto__=5", "/?a[n]=9", "/"]) await query.get(path);
      expect(await query.left()).toBe(1e6 - 6);
      await query.get("/?a=b&n=7");
      expect(await query.left()).toBe(1e6 - 13);
      // Handlers read the first or the last: repeating it must not pay the default.
      for (const path of ["/?n=4&n=1", "/?n=1&n=4", "/?n=4&n=4", "/?n=4&n=NaN"]) await query.get(path);
      expect(await query.left()).toBe(1e6 - 29);
      // Some handlers read these as n.
      for (const path of ["/?n[]=4", "/?n[0]=4", "/?[n]=4", "/?n%5B%5D=4"]) await query.get(path);
      expect(await query.left()).toBe(1e6 - 45);
    });

    test("takes from all of several limits, or from none", async () => {
      const rules = [
        { name: "user", key: (request: SuiteRequest) => request.header("x-user") },
        { name: "all", key: false, count: 2 },
      ];
      const two = { user: POLICY, all: { ...POLICY, capacity: 6 } } satisfies Record<string, Config>;
      const { get, left, limits } = await start({ limits: rules }, two);
      const granted = (await (await get("/", { "x-user": "a" })).json()) as RequestDecision;
      // The binding one is the limit with fewer tokens left.
      expect([granted.remaining, granted.decisions.map(({ policy }) => policy.name)]).toEqual([4, ["user", "all"]]);
      for (const user of ["b", "c"]) expect((await get("/", { "x-user": user })).status).toBe(200);
      const denied = await get("/", { "x-user": "a" });
      expect(denied.status).toBe(429);
      expect(await denied.json()).toMatchObject({ "violated-policies": ["all"] });
      expect(denied.headers.get("ratelimit")).toMatch(/^"user";r=3;.*, "all";r=0;/);
      expect([await left("user", "a"), (await limits.getValue("all")).value]).toEqual([4, 0]);
    });

    test("a request chooses its rules, of a limit by name or by config, and may be skipped", async () => {
      const plans = { free: POLICY, pro: { ...POLICY, capacity: 50 } };
      const byName = await start(
        { name: (request: SuiteRequest) => (request.header("x-plan") === "pro" ? "pro" : "free"), count: 4 },
        plans,
      );
      const names = async (plan: string) => (await byName.get("/", { "x-plan": plan })).headers.get("ratelimit");
      expect([await names("pro"), await names("__proto__")]).toEqual([
        expect.stringMatching(/^"pro";r=46;/),
        expect.stringMatching(/^"free";r=1;/),
      ]);
      const config = async (request: SuiteRequest): Promise<Config> => ({
        ...POLICY,
        capacity: Number(request.header("x-capacity")),
      });
      const inline = await start(
        { name: "inline", config, skip: (request: SuiteRequest) => request.header("x-skip") === "1" },
        {},
      );
      expect((await inline.get("/", { "x-capacity": "8" })).headers.get("ratelimit-policy")).toBe('"inline";q=8;w=480');
      expect((await inline.get("/", { "x-skip": "1" })).headers.get("ratelimit-policy")).toBeNull();
      const rules = (request: SuiteRequest) => [{ name: request.header("x-plan") ?? "free" }];
      const chosen = await start({ limits: rules }, plans);
      expect((await chosen.get("/", { "x-plan": "pro" })).headers.get("ratelimit")).toMatch(/^"pro";r=49;/);
    });

    test("a response that `denied` makes has the fields", async () => {
      const { get } = await start({ name: "api", count: 5, custom: { status: 420, text: "enhance your calm" } });
      await get();
      const denied = await get();
      expect(denied.status).toBe(420);
      expect(await denied.text()).toContain("enhance your calm");
      expect(Number(denied.headers.get("retry-after"))).toBeGreaterThanOrEqual(300);
    });

    test("Retry-After is spread over at most 30 s, never early, and the same for the same client", async () => {
      const { get } = await start({ name: "api", key: (request: SuiteRequest) => request.header("x-user"), count: 5 });
      const waits = new Set<number>();
      for (let user = 0; user < 8; user++) {
        const request = () => get("/", { "x-user": `u${user}` });
        await request();
        const denied = await request();
        const first = Number(denied.headers.get("retry-after"));
        expect(((await denied.json()) as { detail: string }).detail).toContain(`Retry in ${first} s.`);
        const second = Number((await request()).headers.get("retry-after"));
        expect(first).toBe(second);
        expect(first).toBeGreaterThanOrEqual(300);
        expect(first).toBeLessThanOrEqual(330);
        waits.add(first);
      }
      expect(waits.size).toBeGreaterThan(4);
    });

    test("in shadow mode it decides and reports, allows every request, and sets no field", async () => {
      const seen: boolean[] = [];
      const { get } = await start({ name: "api", count: 5, shadow: true, onDecision: ({ ok }) => void seen.push(ok) });
      const [first, second] = [await get(), await get()];
      expect([first.status, second.status]).toEqual([200, 200]);
      expect(((await second.json()) as Decision).ok).toBe(false);
      expect([...second.headers.keys()].filter((field) => /ratelimit|retry/i.test(field))).toEqual([]);
      expect(seen).toEqual([true, false]);
    });

    test("sets the fields of other families, or none", async () => {
      const old = await start({ name: "api", headers: { fields: ["draft-6", "x-ratelimit"] } });
      const { headers } = await old.get();
      expect([headers.get("ratelimit-remaining"), headers.get("x-ratelimit-limit")]).toEqual(["4", "5"]);
      const none = await start({ name: "api", headers: false, count: 5 });
      await none.get();
      const denied = await none.get();
      expect(denied.status).toBe(429);
      expect(denied.headers.get("ratelimit")).toBeNull();
    });

    test("the response of two instances with the limit of one name has the name once, with fewer tokens left", async () => {
      const { get } = await start([{ name: "api" }, { name: "api", count: 2 }]);
      const { headers } = await get();
      expect(headers.get("ratelimit-policy")).toBe('"api";q=5;w=300');
      expect(headers.get("ratelimit")).toMatch(/^"api";r=2;t=\d+$/);
    });

    if (!wraps) {
      test("one instance that is mounted twice decides once", async () => {
        const { get } = await start({ name: "api", twice: true });
        const response = await get();
        expect(response.headers.get("ratelimit")).toMatch(/^"api";r=4;t=\d+$/);
        expect(((await response.json()) as Decision).remaining).toBe(4);
      });
    }

    test("a denial has the status that was set, and the body: a text, an object, or what a function returns", async () => {
      const body = async (message: unknown) => {
        const { get } = await start({ name: "api", count: 5, statusCode: 420, message } as SuiteOptions);
        await get();
        const denied = await get();
        expect([denied.status, denied.headers.get("ratelimit")]).toEqual([420, expect.stringMatching(/^"api";r=0;/)]);
        return [denied.headers.get("content-type")?.split(";")[0], await denied.text()];
      };
      const [, text] = await body("slow down");
      expect(text).toContain("slow down");
      expect(await body({ error: "slow down" })).toEqual(["application/json", '{"error":"slow down"}']);
      const [type, json] = await body(undefined);
      expect([type, JSON.parse(json ?? "")]).toEqual([
        "application/problem+json",
        expect.objectContaining({ status: 420 }),
      ]);
      const called = async (_: unknown, { status }: { status: number }) => ({ error: status });
      expect(await body(called)).toEqual(["application/json", '{"error":420}']);
    });

    test("a denied function that rejects fails the request, and nothing else", async () => {
      vi.spyOn(console, "error").mockImplementation(() => {});
      const { get } = await start({ name: "api", count: 5, custom: "rejects" });
      await get();
      for (let i = 0; i < 2; i++) expect((await get()).status).toBe(500);
    });

    test("an onDecision that rejects fails the request, and nothing else", async () => {
      vi.spyOn(console, "error").mockImplementation(() => {});
      const onDecision = async () => Promise.reject(new Error("the log is full"));
      const { get } = await start({ name: "api", onDecision });
      for (let i = 0; i < 2; i++) expect((await get()).status).toBe(500);
    });

    test.each([undefined, null, "", "route", "router"])(
      "a key function that fails with %j fails the request",
      async (thrown) => {
        vi.spyOn(console, "error").mockImplementation(() => {});
        const key = (request: SuiteRequest) => {
          if (request.header("x-user") === "throws") throw thrown;
          return Promise.reject(thrown);
        };
        const { get } = await start({ name: "api", key });
        for (const user of ["throws", "rejects"]) expect((await get("/", { "x-user": user })).status).toBe(500);
      },
    );

    test("skipFailedRequests and skipSuccessfulRequests give tokens back by the status", async () => {
      const failed = await start({ name: "api", skipFailedRequests: true });
      await failed.get("/?status=200");
      await failed.get("/?status=404");
      await eventually(async () => expect(await failed.left()).toBe(4));
      const successful = await start({ name: "api", skipSuccessfulRequests: true });
      await successful.get("/?status=401");
      await successful.get("/?status=302");
      await eventually(async () => expect(await successful.left()).toBe(4));
    });

    test("two instances in a row append their fields", async () => {
      const policies = { a: POLICY, b: { ...POLICY, capacity: 9 } };
      const { get } = await start([{ name: "a" }, { name: "b" }], policies);
      expect((await get()).headers.get("ratelimit-policy")).toMatch(
        /^"(a";q=5;w=300, "b";q=9;w=540|b";q=9;w=540, "a";q=5;w=300)$/,
      );
    });

    settling(start);
  });
}
