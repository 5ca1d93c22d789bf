/** hono-rate-limiter behaves as the site's page says. */
import { Hono, type MiddlewareHandler } from "hono";
import { type HonoConfigProps, type RateLimitInfo, rateLimiter } from "hono-rate-limiter";
import { describe, expect } from "vitest";
import { defineLimits, MINUTE } from "../../../npm/tidegate/src/index.ts";
import { rateLimit } from "../../../npm/tidegate/src/middleware/hono.ts";
import { transactional } from "../../../npm/tidegate/src/stores/index.ts";
import { refused, suite } from "./rows.ts";

const two = { kind: "token bucket", rate: 2, period: MINUTE } as const;

describe("hono-rate-limiter", () => {
  async function responses(middleware: MiddlewareHandler, times: number): Promise<Response[]> {
    const app = new Hono();
    app.use(middleware);
    app.get("/", (c) => c.text("hello"));
    app.onError((_error, c) => c.text("error", 500));
    const all = [];
    for (let i = 0; i < times; i++) all.push(await app.request("/"));
    return all;
  }
  const statuses = async (middleware: MiddlewareHandler, times: number) =>
    (await responses(middleware, times)).map(({ status }) => status);
  const there = (options: Partial<HonoConfigProps> = {}) =>
    rateLimiter({ windowMs: MINUTE, limit: 2, keyGenerator: () => "k", ...options } as HonoConfigProps);
  const here = () => rateLimit(defineLimits({ api: two }, { now: () => 0 }), { name: "api", key: "k" });

  suite("hono-rate-limiter", {
    "a denied request": async () => {
      const used: number[] = [];
      const handler: HonoConfigProps["handler"] = (c) => {
        used.push((c.get("rateLimit") as unknown as RateLimitInfo).used);
        return c.text("slow", 429);
      };
      expect(await statuses(there({ handler }), 4)).toEqual([200, 200, 429, 429]);
      expect(used).toEqual([3, 4]);
      const limits = defineLimits({ api: two }, { now: () => 0 });
      expect(await statuses(rateLimit(limits, { name: "api", key: "k" }), 4)).toEqual([200, 200, 429, 429]);
      expect(limits.getValue("api", { key: "k" })).toMatchObject({ value: 0, ts: 0 });
    },
    "requests come back": async () => {
      const [first] = await responses(there(), 1);
      expect(first?.headers.get("RateLimit-Reset")).toBe("60");
      const clock = { now: 0 };
      const limits = defineLimits({ api: two }, { now: () => clock.now });
      const middleware = rateLimit(limits, { name: "api", key: "k" });
      expect(await statuses(middleware, 3)).toEqual([200, 200, 429]);
      clock.now = MINUTE / 2;
      expect(await statuses(middleware, 2)).toEqual([200, 429]);
    },
    "the fields, without an option": async () => {
      const names = async (middleware: MiddlewareHandler) =>
        [...((await responses(middleware, 1))[0] as Response).headers.keys()].filter((name) => /rate/.test(name));
      const draft6 = ["ratelimit-limit", "ratelimit-policy", "ratelimit-remaining", "ratelimit-reset"];
      expect(await names(there())).toEqual(draft6);
      expect(await names(here())).toEqual(["ratelimit", "ratelimit-policy"]);
      const limits = defineLimits({ api: two });
      const older = rateLimit(limits, { name: "api", key: "k", headers: { fields: "draft-6" } });
      expect(await names(older)).toEqual(draft6);
    },
    "the body of a denial": async () => {
      const text = (await responses(there(), 3))[2] as Response;
      expect(await text.text()).toBe("Too many requests, please try again later.");
      const problem = (await responses(here(), 3))[2] as Response;
      expect(problem.headers.get("Content-Type")).toBe("application/problem+json");
    },
    "`Retry-After`": async () => {
      expect((await responses(there(), 3))[2]?.headers.get("Retry-After")).toBe("60");
      const wait = Number((await responses(here(), 3))[2]?.headers.get("Retry-After"));
      expect(wait).toBeGreaterThanOrEqual(30);
      expect(wait).toBeLessThanOrEqual(45);
    },
    "a store that fails": async () => {
      const down = () => Promise.reject(new Error("connection refused"));
      const store = { increment: down, decrement: down, resetKey: down } as unknown as HonoConfigProps["store"];
      expect(await statuses(there({ store } as Partial<HonoConfigProps>), 1)).toEqual([500]);
      const limits = defineLimits({ api: two }, { store: transactional({ name: "down", transaction: down }) });
      expect(await statuses(rateLimit(limits, { name: "api", key: "k" }), 1)).toEqual([503]);
    },
    'a key that is `""`': async () => {
      expect(await statuses(there({ keyGenerator: () => "" }), 3)).toEqual([200, 200, 429]);
      expect(await statuses(rateLimit(defineLimits({ api: two }), { name: "api", key: () => "" }), 1)).toEqual([500]);
    },
    "a limit of 0": async () => {
      expect(await statuses(there({ limit: 0 }), 1)).toEqual([429]);
      expect(refused(() => defineLimits({ api: { ...two, rate: 0 } }))).toBe(true);
    },
    "a limit that is raised for a key, as by a change of plan": async () => {
      const plans = () => {
        const rates = [1, 1, 3, 3];
        return () => rates.shift() as number;
      };
      expect(await statuses(there({ limit: plans() }), 4)).toEqual([200, 429, 200, 429]);
      const rate = plans();
      const config = () => ({ ...two, rate: rate() });
      const ours = rateLimit(defineLimits({}, { now: () => 0 }), { name: "api", key: "k", config });
      expect(await statuses(ours, 4)).toEqual([200, 429, 429, 429]);
    },
  });
});
