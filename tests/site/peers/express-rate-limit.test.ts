/** express-rate-limit behaves as the site's page says. */
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import express from "express";
import express4 from "express4";
import {
  type AugmentedRequest,
  ipKeyGenerator,
  MemoryStore,
  type Options,
  rateLimit as expressRateLimit,
  type Store,
} from "express-rate-limit";
import { describe, expect, expectTypeOf, test } from "vitest";
import { clientIp } from "../../../npm/tidegate/src/http/index.ts";
import { defineLimits, MINUTE } from "../../../npm/tidegate/src/index.ts";
import { type RequestDecision, rateLimit } from "../../../npm/tidegate/src/middleware/express.ts";
import { transactional } from "../../../npm/tidegate/src/stores/index.ts";
import { root } from "../../readme/blocks.ts";
import { refused, suite } from "./rows.ts";

const six = { kind: "token bucket", rate: 6, period: MINUTE } as const;

describe("express-rate-limit", () => {
  /** The statuses of so many requests, and the last response. */
  async function statuses(middleware: express.RequestHandler, times: number) {
    const app = express().set("env", "test");
    app.use(middleware, (_request, response) => void response.send("hello"));
    app.use(((_error, _request, response, _next) => void response.status(500).end()) as express.ErrorRequestHandler);
    const listening = app.listen(0, "127.0.0.1");
    await new Promise((resolve) => listening.once("listening", resolve));
    try {
      const answers = [];
      const { port } = listening.address() as AddressInfo;
      for (let i = 0; i < times; i++) answers.push(await fetch(`http://127.0.0.1:${port}/`));
      return { statuses: answers.map(({ status }) => status), last: answers.at(-1) as Response };
    } finally {
      listening.closeAllConnections();
      listening.close();
    }
  }
  const settings: Partial<Options> = { windowMs: MINUTE, limit: 2, standardHeaders: "draft-6", legacyHeaders: false };

  suite("express-rate-limit", {
    "a denied request": async () => {
      const store = new MemoryStore();
      const denied = await statuses(expressRateLimit({ ...settings, store, keyGenerator: () => "k" }), 5);
      expect(denied.statuses).toEqual([200, 200, 429, 429, 429]);
      expect((await store.get("k"))?.totalHits).toBe(5);
      store.shutdown();
      const limits = defineLimits({ api: { ...six, rate: 2 } }, { now: () => 0 });
      expect((await statuses(rateLimit(limits, { name: "api", key: "k" }), 5)).statuses).toEqual(denied.statuses);
      expect(limits.getValue("api", { key: "k" })).toMatchObject({ value: 0, ts: 0 });
    },
    "a request that costs more than one": async () => {
      // Its stores count one hit per call.
      expect(MemoryStore.prototype.increment.length).toBe(1);
      const limits = defineLimits({ api: six });
      expect((await statuses(rateLimit(limits, { name: "api", count: 4 }), 2)).statuses).toEqual([200, 429]);
    },
    "when a window begins": async () => {
      const store = new MemoryStore();
      store.init({ windowMs: MINUTE } as Options);
      const before = Date.now();
      const first = (await store.increment("k")).resetTime as Date;
      expect(first.getTime()).toBeGreaterThanOrEqual(before + MINUTE);
      store.shutdown();
      const window = { kind: "fixed window", rate: 2, period: MINUTE } as const;
      const at = (key: string, start?: number | "first request") =>
        defineLimits({ api: start === undefined ? window : { ...window, start } }, { now: () => 90_000 }).limit("api", {
          key,
        });
      expect(at("a").resetAt).toBe(at("a").resetAt);
      expect(at("a").resetAt % MINUTE).not.toBe(at("b").resetAt % MINUTE);
      expect(at("a", 0).resetAt).toBe(2 * MINUTE);
      expect(at("a", "first request").resetAt).toBe(90_000 + MINUTE);
    },
    "a store that fails": async () => {
      const down = () => Promise.reject(new Error("connection refused"));
      const store = { increment: down, decrement: down, resetKey: down } as unknown as Store;
      const silent = { ...settings, store, validate: false, logger: { error() {}, warn() {} } } as Partial<Options>;
      expect((await statuses(expressRateLimit(silent), 1)).statuses).toEqual([500]);
      expect((await statuses(expressRateLimit({ ...silent, passOnStoreError: true }), 1)).statuses).toEqual([200]);
      const with_ = (onStoreError: "deny" | "allow" | { local: number }) =>
        defineLimits({ api: six }, { store: transactional({ name: "down", transaction: down }), onStoreError });
      const denied = await statuses(rateLimit(with_("deny"), { name: "api" }), 1);
      expect(denied.statuses).toEqual([503]);
      expect((await statuses(rateLimit(with_("allow"), { name: "api" }), 1)).statuses).toEqual([200]);
      const half = await statuses(rateLimit(with_({ local: 0.5 }), { name: "api" }), 4);
      expect(half.statuses).toEqual([200, 200, 200, 429]);
    },
    "`Retry-After`": async () => {
      const there = await statuses(expressRateLimit({ ...settings, validate: false }), 3);
      // The rest of the minute, whatever the request needs.
      expect(Number(there.last.headers.get("Retry-After"))).toBeGreaterThan(30);
      const limits = defineLimits({ api: six }, { now: () => 0 });
      const here = await statuses(rateLimit(limits, { name: "api", jitter: 0 }), 7);
      expect(here.last.headers.get("Retry-After")).toBe("10");
      const spread = await statuses(rateLimit(limits, { name: "api" }), 1);
      expect(Number(spread.last.headers.get("Retry-After"))).toBeGreaterThanOrEqual(10);
      expect(Number(spread.last.headers.get("Retry-After"))).toBeLessThanOrEqual(15);
    },
    "the fields, without an option": async () => {
      const names = ({ last }: { last: Response }) => [...last.headers.keys()].filter((name) => /rate/.test(name));
      const there = await statuses(expressRateLimit({ windowMs: MINUTE, limit: 2, validate: false }), 1);
      expect(names(there)).toEqual(["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]);
      const here = await statuses(rateLimit(defineLimits({ api: six }), { name: "api" }), 1);
      expect(names(here)).toEqual(["ratelimit", "ratelimit-policy"]);
    },
    "the reset of older fields, of a denial": async () => {
      const there = await statuses(expressRateLimit({ ...settings, validate: false }), 3);
      expect(Number(there.last.headers.get("RateLimit-Reset"))).toBeGreaterThan(30);
      const limits = defineLimits({ api: six }, { now: () => 0 });
      const here = await statuses(rateLimit(limits, { name: "api", headers: { fields: "draft-6" } }), 7);
      expect(here.last.headers.get("RateLimit-Reset")).toBe(here.last.headers.get("Retry-After"));
    },
    "the body of a denial": async () => {
      const there = await statuses(expressRateLimit({ ...settings, validate: false }), 3);
      expect(await there.last.text()).toBe("Too many requests, please try again later.");
      expect(there.last.headers.get("Content-Type")).toContain("text/html");
      const here = await statuses(rateLimit(defineLimits({ api: six }), { name: "api" }), 7);
      expect(here.last.headers.get("Content-Type")).toBe("application/problem+json");
      const text = await statuses(rateLimit(defineLimits({ api: six }), { name: "api", message: "slow down" }), 7);
      expect(text.last.headers.get("Content-Type")).toContain("text/plain");
    },
    "a limit of 0": async () => {
      expect((await statuses(expressRateLimit({ ...settings, limit: 0, validate: false }), 1)).statuses).toEqual([429]);
      expect(refused(() => defineLimits({ api: { ...six, rate: 0 } }))).toBe(true);
    },
    "a limit that is raised for a key, as by a change of plan": async () => {
      const plans = () => {
        const rates = [1, 1, 3, 3];
        return () => rates.shift() as number;
      };
      const limit = plans();
      const there = expressRateLimit({ ...settings, validate: false, keyGenerator: () => "k", limit });
      expect((await statuses(there, 4)).statuses).toEqual([200, 429, 200, 429]);
      const limits = defineLimits({}, { now: () => 0 });
      const rate = plans();
      const here = rateLimit(limits, { name: "api", key: "k", config: () => ({ ...six, rate: rate() }) });
      expect((await statuses(here, 4)).statuses).toEqual([200, 429, 429, 429]);
      limits.reset("api", { key: "k", config: { ...six, rate: 3 } });
      expect(limits.check("api", { key: "k", config: { ...six, rate: 3 }, count: 3 }).ok).toBe(true);
    },
    'a key that is `undefined`, `""` or a number': async () => {
      for (const key of [undefined, "", 7]) {
        const keyGenerator = () => key as string;
        const there = expressRateLimit({ ...settings, validate: false, limit: 1, keyGenerator });
        expect((await statuses(there, 2)).statuses).toEqual([200, 429]);
        const here = rateLimit(defineLimits({ api: six }), { name: "api", key: keyGenerator });
        expect((await statuses(here, 1)).statuses).toEqual([500]);
      }
    },
  });

  test.each([
    ["4", express4 as unknown as typeof express],
    ["5", express],
  ])(
    "Express %s: a function gets the response, which `keyGenerator` has as its second argument, as `req.res`",
    async (_, create) => {
      const app = create().use((_request, { locals }, next) => {
        locals["user"] = "ada";
        next();
      });
      const theirs: string[] = [];
      const key = ({ res }: express.Request) => String(res?.locals["user"]);
      const limits = defineLimits({ api: six });
      app.use(
        expressRateLimit({
          ...settings,
          validate: false,
          keyGenerator: (_request, { locals }) => `${theirs.push(locals["user"])}`,
        }),
        rateLimit(limits, { name: "api", key }),
        (_request, response) => void response.end(),
      );
      const listening = app.listen(0, "127.0.0.1");
      await new Promise((resolve) => listening.once("listening", resolve));
      await fetch(`http://127.0.0.1:${(listening.address() as AddressInfo).port}/`);
      listening.closeAllConnections();
      listening.close();
      expect(theirs).toEqual(["ada"]);
      expect(limits.check("api", { key: "ada", count: 0 }).remaining).toBe(5);
    },
  );

  test("`tidegate/express` declares `req.rateLimit` as its own decision, also for `AugmentedRequest`", () => {
    const info = (request: AugmentedRequest) => request.rateLimit;
    expectTypeOf(info).returns.toEqualTypeOf<RequestDecision>();
  });

  test("`ipKeyGenerator(ip)` is `clientIp({ address: ip })`, also of the address that `trust proxy` found", async () => {
    const page = readFileSync(join(root, "npm/site/migrate/express-rate-limit.md"), "utf8");
    expect(page).toContain("| `ipKeyGenerator(ip)` | `clientIp({ address: ip })` of `tidegate/http` |");
    const keys: string[][] = [];
    const app = express().set("trust proxy", 1);
    app.use(({ ip = "" }, response) => {
      keys.push([ipKeyGenerator(ip), clientIp({ address: ip })]);
      response.end();
    });
    const listening = app.listen(0, "127.0.0.1");
    await new Promise((resolve) => listening.once("listening", resolve));
    const { port } = listening.address() as AddressInfo;
    for (const client of ["192.0.2.7", "2001:db8:0:1234::1"])
      await fetch(`http://127.0.0.1:${port}/`, { headers: { "X-Forwarded-For": client } });
    listening.closeAllConnections();
    listening.close();
    const expected = ["192.0.2.7", "2001:db8:0:1200::/56"];
    expect(keys).toEqual(expected.map((key) => [key, key]));
  });
});
