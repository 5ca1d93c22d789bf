/** @fastify/rate-limit behaves as the site's page says. */
import peer, { type RateLimitPluginOptions } from "@fastify/rate-limit";
import Fastify, { type FastifyInstance, type LightMyRequestResponse } from "fastify";
import { describe, expect } from "vitest";
import { defineLimits, MINUTE, SECOND } from "../../../npm/tidegate/src/index.ts";
import { rateLimitPlugin } from "../../../npm/tidegate/src/middleware/fastify.ts";
import { transactional } from "../../../npm/tidegate/src/stores/index.ts";
import { refused, suite } from "./rows.ts";

const two = { kind: "token bucket", rate: 2, period: MINUTE } as const;
type Register = (app: FastifyInstance) => PromiseLike<unknown>;

describe("@fastify/rate-limit", () => {
  async function responses(register: Register, times: number): Promise<LightMyRequestResponse[]> {
    const app = Fastify();
    await register(app);
    app.get("/", () => "hello");
    const all = [];
    for (let i = 0; i < times; i++) all.push(await app.inject("/"));
    await app.close();
    return all;
  }
  const statuses = async (register: Register, times: number) =>
    (await responses(register, times)).map(({ statusCode }) => statusCode);
  const there =
    (options: RateLimitPluginOptions = {}): Register =>
    (app) =>
      app.register(peer, { max: 2, timeWindow: MINUTE, ...options });
  const here =
    (options: object = {}, limiter = defineLimits({ api: two }, { now: () => 1e12 })): Register =>
    (app) =>
      app.register(rateLimitPlugin, { limiter, name: "api", ...options });

  suite("fastify-rate-limit", {
    "requests come back": async () => {
      expect((await responses(there(), 1))[0]?.headers["x-ratelimit-reset"]).toBe("60");
      const clock = { now: 0 };
      const limiter = defineLimits({ api: two }, { now: () => clock.now });
      const later: Register = (app) => {
        app.addHook("onRequest", async () => {
          clock.now += 15 * SECOND;
        });
        return here({}, limiter)(app);
      };
      // A quarter of the period passes before each, in which half a request comes back.
      expect(await statuses(later, 6)).toEqual([200, 200, 200, 429, 200, 429]);
    },
    "the fields, without an option": async () => {
      const fields = async (register: Register) =>
        Object.entries(((await responses(register, 1))[0] as LightMyRequestResponse).headers).filter(([name]) =>
          name.includes("rate"),
        );
      const all = (reset: string) => ({
        "x-ratelimit-limit": "2",
        "x-ratelimit-remaining": "1",
        "x-ratelimit-reset": reset,
      });
      expect(Object.fromEntries(await fields(there()))).toEqual(all("60"));
      expect((await fields(here())).map(([name]) => name)).toEqual(["ratelimit-policy", "ratelimit"]);
      const older = await fields(here({ headers: { fields: "x-ratelimit" } }));
      // The same names; the reset is a time, in s since the Unix epoch.
      expect(Object.fromEntries(older)).toEqual(all("1000000030"));
    },
    "the body of a denial": async () => {
      expect((await responses(there(), 3))[2]?.json()).toEqual({
        statusCode: 429,
        error: "Too Many Requests",
        message: "Rate limit exceeded, retry in 1 minute",
      });
      expect((await responses(here(), 3))[2]?.headers["content-type"]).toMatch("application/problem+json");
    },
    "`Retry-After`": async () => {
      expect((await responses(there(), 3))[2]?.headers["retry-after"]).toBe("60");
      const wait = Number((await responses(here(), 3))[2]?.headers["retry-after"]);
      expect(wait).toBeGreaterThanOrEqual(30);
      expect(wait).toBeLessThanOrEqual(45);
    },
    "a store that fails": async () => {
      class Down {
        incr(_key: string, callback: (error: Error) => void) {
          callback(new Error("connection refused"));
        }
        child() {
          return new Down();
        }
      }
      const store = Down as unknown as NonNullable<RateLimitPluginOptions["store"]>;
      expect(await statuses(there({ store }), 1)).toEqual([500]);
      expect(await statuses(there({ store, skipOnError: true }), 1)).toEqual([200]);
      const down = transactional({ name: "down", transaction: () => Promise.reject(new Error("refused")) });
      expect(await statuses(here({}, defineLimits({ api: two }, { store: down }) as never), 1)).toEqual([503]);
    },
    "a limit of 0": async () => {
      expect(await statuses(there({ max: 0 }), 1)).toEqual([429]);
      expect(refused(() => defineLimits({ api: { ...two, rate: 0 } }))).toBe(true);
    },
  });
});
