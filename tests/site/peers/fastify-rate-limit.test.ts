/** @fastify/rate-limit behaves as the site's page says. */
import peer, { normalizeIP, type RateLimitPluginOptions } from "@fastify/rate-limit";
import Fastify, { type FastifyInstance, type FastifyRequest, type LightMyRequestResponse } from "fastify";
import { describe, expect, test } from "vitest";
import { clientIp } from "../../../npm/tidegate/src/http/index.ts";
import { defineLimits, MINUTE, SECOND } from "../../../npm/tidegate/src/index.ts";
import { type FastifyDenied, rateLimit, rateLimitPlugin } from "../../../npm/tidegate/src/middleware/fastify.ts";
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
    "`setErrorHandler`": async () => {
      const handled: unknown[] = [];
      const withHandler =
        (register: Register): Register =>
        (app) => {
          app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
            handled.push(error.statusCode);
            reply.code(418).send(error.message);
          });
          return register(app);
        };
      expect(await statuses(withHandler(there()), 3)).toEqual([200, 200, 418]);
      expect(handled.splice(0)).toEqual([429]);
      expect(await statuses(withHandler(here()), 3)).toEqual([200, 200, 429]);
      expect(handled).toEqual([]);
      const denied: FastifyDenied = (_request, _reply, { problem, status }) => {
        throw Object.assign(new Error(problem.detail), { statusCode: status });
      };
      const [, , passed] = await responses(withHandler(here({ denied, jitter: 0 })), 3);
      expect(passed?.payload).toBe('"api" has too few tokens left. Retry in 30 s.');
      expect(handled).toEqual([429]);
    },
    "a route's own hook, of the same name as `hook`": async () => {
      const order = async (register: (app: FastifyInstance, key: () => string) => PromiseLike<unknown>) => {
        const calls: string[] = [];
        const app = Fastify();
        await register(app, () => String(calls.push("limit")));
        const auth = async () => void calls.push("auth");
        app.get("/", { preHandler: auth }, () => "hello");
        const after = rateLimit(defineLimits({ api: two }), { name: "api", key: () => String(calls.push("limit")) });
        app.get("/after", { config: { rateLimit: false }, preHandler: [auth, after] }, () => "hello");
        await app.inject("/");
        const own = calls.splice(0);
        await app.inject("/after");
        return [own, calls];
      };
      const hook = "preHandler";
      const theirs = await order((app, keyGenerator) => app.register(peer, { hook, keyGenerator }));
      const limiter = defineLimits({ api: two });
      const ours = await order((app, key) => app.register(rateLimitPlugin, { limiter, name: "api", hook, key }));
      expect(theirs[0]).toEqual(["auth", "limit"]);
      expect(ours).toEqual([
        ["limit", "auth"],
        ["auth", "limit"],
      ]);
    },
    "`keyGenerator` of the plugin, on a route with a limit of its own": async () => {
      const users = async (register: Register, config: object) => {
        const app = Fastify();
        await register(app);
        app.get("/", { config }, () => "hello");
        const all = [];
        for (const user of ["ada", "bob"]) all.push(await app.inject({ url: "/", headers: { user } }));
        return all.map(({ statusCode }) => statusCode);
      };
      const key = ({ headers }: FastifyRequest) => String(headers["user"]);
      expect(await users(there({ keyGenerator: key }), { rateLimit: { max: 1 } })).toEqual([200, 200]);
      const ours = here({ key }, defineLimits({ api: two, own: { ...two, rate: 1 } }) as never);
      expect(await users(ours, { rateLimit: { name: "own" } })).toEqual([200, 429]);
      expect(await users(ours, { rateLimit: { name: "own", key } })).toEqual([200, 200]);
    },
    "two routes with one `groupId`": async () => {
      const both = async (register: Register, config: object) => {
        const app = Fastify();
        await register(app);
        for (const path of ["/a", "/b"]) app.get(path, { config }, () => "hello");
        return [(await app.inject("/a")).statusCode, (await app.inject("/b")).statusCode];
      };
      expect(await both(there(), { rateLimit: { max: 1, groupId: "otp" } })).toEqual([200, 200]);
      const limiter = defineLimits({ api: two, otp: { ...two, rate: 1 } });
      expect(await both(here({}, limiter as never), { rateLimit: { name: "otp" } })).toEqual([200, 429]);
    },
    "a limit that is raised for a key, as by a change of plan": async () => {
      const plans = () => {
        const rates = [1, 1, 3, 3];
        return () => rates.shift() as number;
      };
      expect(await statuses(there({ max: plans() }), 4)).toEqual([200, 429, 200, 429]);
      const rate = plans();
      const config = () => ({ ...two, rate: rate() });
      expect(await statuses(here({ config }), 4)).toEqual([200, 429, 429, 429]);
    },
    'a key that is `undefined`, `""` or a number': async () => {
      for (const found of [undefined, "", 7]) {
        const key = () => found as string;
        expect(await statuses(there({ max: 1, keyGenerator: key }), 2)).toEqual([200, 429]);
        expect(await statuses(here({ key }), 1)).toEqual([500]);
      }
    },
  });

  test("`normalizeIP(ip, 64)` finds the same clients as `clientIp({ address: ip }, { prefix: 64 })`", () => {
    const clients = ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"];
    const groups = (key: (ip: string) => string) =>
      clients.map((ip) => clients.findIndex((one) => key(one) === key(ip)));
    const theirs = groups((ip) => normalizeIP(ip, 64));
    expect(theirs).toEqual([0, 0, 2, 2, 4]);
    expect(groups((ip) => clientIp({ address: ip }, { prefix: 64 }))).toEqual(theirs);
  });
});
