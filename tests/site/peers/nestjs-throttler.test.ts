/** @nestjs/throttler behaves as the site's page says. */
import "reflect-metadata";
import { Controller, type DynamicModule, Get, Module, type Provider } from "@nestjs/common";
import { APP_GUARD, NestFactory } from "@nestjs/core";
import {
  SkipThrottle,
  Throttle,
  ThrottlerGuard,
  ThrottlerModule,
  type ThrottlerModuleOptions,
} from "@nestjs/throttler";
import { afterEach, describe, expect, vi } from "vitest";
import { defineLimits, MINUTE, SECOND } from "../../../npm/tidegate/src/index.ts";
import { RateLimit, RateLimitModule, SkipRateLimit } from "../../../npm/tidegate/src/middleware/nest.ts";
import { transactional } from "../../../npm/tidegate/src/stores/index.ts";
import { suite } from "./rows.ts";

const two = { kind: "token bucket", rate: 2, period: MINUTE } as const;

/** A controller with the routes `one` and `two`, each with its decorators. */
function controller(decorators: { readonly one?: MethodDecorator[]; readonly two?: MethodDecorator[] } = {}) {
  class Routes {
    one() {
      return "one";
    }
    two() {
      return "two";
    }
  }
  Controller()(Routes);
  for (const name of ["one", "two"] as const) {
    const method = Object.getOwnPropertyDescriptor(Routes.prototype, name) as PropertyDescriptor;
    for (const decorate of [Get(name), ...(decorators[name] ?? [])]) decorate(Routes.prototype, name, method);
  }
  return Routes;
}

afterEach(() => void vi.useRealTimers());

describe("@nestjs/throttler", () => {
  async function responses(
    imports: DynamicModule,
    providers: Provider[],
    paths: string[],
    routes = controller(),
  ): Promise<Response[]> {
    class App {}
    Module({ imports: [imports], providers, controllers: [routes] })(App);
    const app = await NestFactory.create(App, { logger: false });
    try {
      await app.listen(0, "127.0.0.1");
      const all = [];
      for (const path of paths) all.push(await fetch(`${await app.getUrl()}/${path}`));
      return all;
    } finally {
      await app.close();
    }
  }
  const there = (paths: string[], options: ThrottlerModuleOptions = [{ ttl: MINUTE, limit: 2 }]) =>
    responses(ThrottlerModule.forRoot(options), [{ provide: APP_GUARD, useClass: ThrottlerGuard }], paths);
  const here = (paths: string[], limiter = defineLimits({ api: two }, { now: () => 1e12 })) =>
    responses(RateLimitModule.forRoot({ limiter, name: "api" }), [], paths);
  const statuses = (all: Response[]) => all.map(({ status }) => status);
  const fields = ({ headers }: Response) => [...headers.keys()].filter((name) => /rate|retry/.test(name));
  const paths = ["one", "one", "one", "two"];

  suite("nestjs-throttler", {
    "a limit on two routes": async () => {
      expect(statuses(await there(paths))).toEqual([200, 200, 429, 200]);
      expect(statuses(await here(paths))).toEqual([200, 200, 429, 429]);
    },
    "a denied request": async () => {
      const times = [0, 50, 61, 111].map((seconds) => seconds * SECOND);
      const paths = times.map(() => "one");
      const clock = () => {
        let calls = 0;
        return () => times[calls++] as number;
      };
      const tick = clock();
      vi.useFakeTimers({ toFake: ["Date"] });
      const throttlers = [{ ttl: MINUTE, limit: 1 }];
      const getTracker = async () => {
        vi.setSystemTime(tick());
        return "k";
      };
      // The hit has expired at 61 s; the block lasts until 110 s.
      expect(statuses(await there(paths, { throttlers, getTracker }))).toEqual([200, 429, 429, 200]);
      vi.useRealTimers();
      const ours = async (options: object) => {
        const [next, at] = [clock(), { now: 0 }];
        const limiter = defineLimits({ api: { ...two, rate: 1 } }, { now: () => at.now });
        const key = () => {
          at.now = next();
          return "k";
        };
        return statuses(await responses(RateLimitModule.forRoot({ limiter, name: "api", key, ...options }), [], paths));
      };
      expect(await ours({})).toEqual([200, 429, 200, 429]);
      expect(await ours({ block: { after: 1, for: MINUTE } })).toEqual([200, 429, 429, 200]);
    },
    "a decorator of a route, beside several limits": async () => {
      const all = ["one", "one", "one", "one", "two", "two", "two"];
      const throttlers = [
        { name: "short", ttl: MINUTE, limit: 1 },
        { name: "long", ttl: MINUTE, limit: 3 },
      ];
      const theirs = controller({ one: [Throttle({ short: { ttl: MINUTE, limit: 9 } })], two: [SkipThrottle()] });
      const guard = { provide: APP_GUARD, useClass: ThrottlerGuard };
      const kept = await responses(ThrottlerModule.forRoot(throttlers), [guard], all, theirs);
      expect(statuses(kept)).toEqual([200, 200, 200, 429, 200, 429, 429]);
      const limiter = defineLimits({
        short: { ...two, rate: 1 },
        long: { ...two, rate: 3 },
        wide: { ...two, rate: 9 },
      });
      const limits = [{ name: "short" }, { name: "long" }] as const;
      const ours = controller({ one: [RateLimit({ name: "wide" })], two: [SkipRateLimit()] });
      const replaced = await responses(RateLimitModule.forRoot({ limiter, limits }), [], all, ours);
      expect(statuses(replaced)).toEqual([200, 200, 200, 200, 200, 200, 200]);
    },
    "`getTracker` of the module, on a route with a decorator": async () => {
      // Each request has a key of its own.
      const each = () => {
        let requests = 0;
        return () => `${requests++}`;
      };
      const paths = ["one", "one"];
      const getTracker = each();
      const throttle = Throttle({ default: { ttl: MINUTE, limit: 1 } });
      const options = { throttlers: [{ ttl: MINUTE, limit: 9 }], getTracker: async () => getTracker() };
      const guard = { provide: APP_GUARD, useClass: ThrottlerGuard };
      const routes = controller({ one: [throttle] });
      expect(statuses(await responses(ThrottlerModule.forRoot(options), [guard], paths, routes))).toEqual([200, 200]);
      const ours = async (decorator: object) => {
        const limiter = defineLimits({ api: two, own: { ...two, rate: 1 } });
        const decorated = controller({ one: [RateLimit({ name: "own", ...decorator })] });
        const limited = RateLimitModule.forRoot({ limiter, name: "api", key: each() });
        return statuses(await responses(limited, [], paths, decorated));
      };
      expect(await ours({})).toEqual([200, 429]);
      expect(await ours({ key: each() })).toEqual([200, 200]);
    },
    "the fields, without an option": async () => {
      const [granted, , denied] = (await there(paths)) as [Response, Response, Response];
      expect(fields(granted)).toEqual(["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]);
      expect(granted.headers.get("X-RateLimit-Reset")).toBe("60");
      expect(fields(denied)).toEqual(["retry-after"]);
      const both = [
        { name: "short", ttl: MINUTE, limit: 1 },
        { name: "long", ttl: MINUTE, limit: 9 },
      ];
      expect(fields((await there(["one", "one"], both))[1] as Response)).toEqual(["retry-after-short"]);
      const [allowed, , refused] = (await here(paths)) as [Response, Response, Response];
      expect(fields(allowed)).toEqual(["ratelimit", "ratelimit-policy"]);
      expect(fields(refused)).toEqual(["ratelimit", "ratelimit-policy", "retry-after"]);
    },
    "the body of a denial": async () => {
      const message = "ThrottlerException: Too Many Requests";
      expect(await (await there(paths))[2]?.json()).toEqual({ statusCode: 429, message });
      expect((await here(paths))[2]?.headers.get("Content-Type")).toMatch("application/problem+json");
    },
    "`Retry-After`": async () => {
      expect((await there(paths))[2]?.headers.get("Retry-After")).toBe("60");
      const wait = Number((await here(paths))[2]?.headers.get("Retry-After"));
      expect(wait).toBeGreaterThanOrEqual(30);
      expect(wait).toBeLessThanOrEqual(45);
    },
    "a storage that fails": async () => {
      const down = () => Promise.reject(new Error("connection refused"));
      const throttlers = [{ ttl: MINUTE, limit: 2 }];
      expect(statuses(await there(["one"], { throttlers, storage: { increment: down } }))).toEqual([500]);
      const store = transactional({ name: "down", transaction: down });
      expect(statuses(await here(["one"], defineLimits({ api: two }, { store }) as never))).toEqual([503]);
    },
  });
});
