/** What must not compile: `npm test` compiles this file, and an expected error that is absent is an error. */
import { expect, expectTypeOf, test } from "vitest";
import { rateLimit as express } from "../src/middleware/express.ts";
import { rateLimit as fastify } from "../src/middleware/fastify.ts";
import { rateLimit as hono } from "../src/middleware/hono.ts";
import { rateLimit as koa } from "../src/middleware/koa.ts";
import { rateLimitGuard, RateLimitModule } from "../src/middleware/nest.ts";
import { rateLimit as next, rateLimitAction } from "../src/middleware/next.ts";
import { rateLimitMiddleware } from "../src/middleware/node.ts";
import { observe } from "../src/observe/index.ts";
import { spend, type Spending } from "../src/limiter/budget.ts";
import type { RateLimit } from "../src/react/index.ts";
import { createFetch, limitObjectStream, limitStream, throttle } from "../src/client/index.ts";
import { limitNodeObjectStream, limitNodeStream } from "../src/client/node.ts";
import type { LimitOptions } from "../src/limiter/options.ts";
import {
  type AllDecision,
  type Decision,
  defineLimits,
  type Limiter,
  type LimiterOptions,
  MINUTE,
  memory,
  type Value,
} from "../src/index.ts";
import { type AsyncStore, type Store, transactional } from "../src/stores/index.ts";

const bucket = { kind: "token bucket", rate: 10, period: MINUTE } as const;
const store: AsyncStore = transactional({
  name: "nothing",
  transaction: (body) => body({ get: () => null, set: () => {}, delete: () => {} }),
});
const sync = defineLimits({ sendMessage: bucket, freeTrial: { ...bucket, kind: "fixed window", start: 0 } });
const explicit = defineLimits({ sendMessage: bucket }, { store: memory() });
const later = defineLimits({ sendMessage: bucket }, { store });

test("a synchronous store returns decisions, any other promises of them", async () => {
  expectTypeOf(sync.limit("sendMessage")).toEqualTypeOf<Decision>();
  expectTypeOf(explicit.check("sendMessage")).toEqualTypeOf<Decision>();
  expectTypeOf(sync.limitAll([{ name: "freeTrial" }])).toEqualTypeOf<AllDecision>();
  expectTypeOf(sync.reset("sendMessage")).toEqualTypeOf<void>();
  expectTypeOf(sync.getValue("sendMessage")).toEqualTypeOf<Value>();
  expectTypeOf(later.limit("sendMessage")).toEqualTypeOf<Promise<Decision>>();
  expectTypeOf(later.limitAll([{ name: "sendMessage" }])).toEqualTypeOf<Promise<AllDecision>>();
  const plan = { name: "plan", key: "acme", config: bucket };
  expectTypeOf(sync.limitAll([plan, { name: "sendMessage" }])).toEqualTypeOf<AllDecision>();
  expectTypeOf(later.checkAll([plan, { name: "sendMessage" }])).toEqualTypeOf<Promise<AllDecision>>();
  expectTypeOf(later.charge("sendMessage")).toEqualTypeOf<Promise<Decision>>();
  expectTypeOf(later.reset("sendMessage")).toEqualTypeOf<Promise<void>>();
  expectTypeOf(later.getValue("sendMessage")).toEqualTypeOf<Promise<Value>>();
  const answer = later.limit("sendMessage");
  expect(answer).toBeInstanceOf(Promise);
  expect((await answer).ok).toBe(true);
  expect((await sync.limit("sendMessage")).ok).toBe(true);
});

test("options without a type argument are those of any store, as a limiter without one is", () => {
  expectTypeOf<LimiterOptions>().toEqualTypeOf<LimiterOptions<Store>>();
  const options: LimiterOptions = { now: () => 0 };
  expectTypeOf(defineLimits({ sendMessage: bucket }, options)).toEqualTypeOf<Limiter<"sendMessage">>();
});

test("a limiter of one store or another, as memory where no server is set, is a limiter to all that take one", async () => {
  const url: string | undefined = [...process.argv, "no server"].at(-1);
  const either = url === undefined ? later : explicit;
  const options = { name: "sendMessage", key: () => "all" } as const;
  expectTypeOf(express(either, options)).not.toBeAny();
  expectTypeOf(fastify(either, options)).not.toBeAny();
  expectTypeOf(hono(either, options)).not.toBeAny();
  expectTypeOf(koa(either, options)).not.toBeAny();
  expectTypeOf(rateLimitMiddleware(either, options)).not.toBeAny();
  expectTypeOf(next(either, options, () => new Response())).not.toBeAny();
  expectTypeOf(rateLimitAction(either, options, async () => 1)).not.toBeAny();
  expectTypeOf(rateLimitGuard(either, options)).not.toBeAny();
  expectTypeOf(RateLimitModule.forRoot({ limiter: either, name: "sendMessage" })).not.toBeAny();
  // @ts-expect-error not a limit
  expect(() => express(either, { name: "sendMesage" })).toThrow("`name`");
  expectTypeOf(observe(either, () => {})).toEqualTypeOf(either);
  expect((await spend(either, { limits: ["sendMessage"], estimate: 1, key: "ada" }, () => 1)).ok).toBe(true);
});

test("an undefined limit name is a compile-time and a run-time error", () => {
  const refused = (body: () => unknown) =>
    expect(body).toThrow(/`name` must be one of the limits defined: "sendMessage", "freeTrial"/);
  // @ts-expect-error not a limit
  refused(() => sync.limit("sendMesage"));
  // @ts-expect-error not a limit
  refused(() => sync.check("toString"));
  // @ts-expect-error not a limit
  refused(() => sync.limitAll([{ name: "sendMesage" }]));
  // @ts-expect-error not a limit
  refused(() => sync.reset("freetrial"));
  // @ts-expect-error not a limit
  refused(() => sync.getValue(""));
  expect(sync.limit("defined at the call".replaceAll(" ", "-"), { config: bucket }).ok).toBe(true);
});

test("an undefined limit name is a compile-time and a run-time error in what waits", () => {
  const refused = (body: () => unknown) =>
    expect(body).toThrow(/`name` must be one of the limits defined: "sendMessage", "freeTrial"/);
  // @ts-expect-error not a limit
  refused(() => throttle(() => 1, { limiter: sync, name: "sendMesage" }));
  // @ts-expect-error not a limit
  refused(() => createFetch({ limit: { limiter: sync, name: "sendMesage" } }));
  // @ts-expect-error not a limit
  refused(() => limitStream({ limit: { limiter: sync, name: "sendMesage" } }));
  // @ts-expect-error not a limit
  refused(() => limitObjectStream({ limit: { limiter: sync, name: "sendMesage" } }));
  // @ts-expect-error not a limit
  refused(() => limitNodeStream({ limit: { limiter: sync, name: "sendMesage" } }));
  // @ts-expect-error not a limit
  refused(() => limitNodeObjectStream({ limit: { limiter: sync, name: "sendMesage" } }));
  const any: Limiter = sync;
  const limit = { limiter: any, name: "sendMessage" };
  expect([throttle(() => 1, limit).queued, createFetch({ limit }).queued]).toEqual([0, 0]);
  expect(limitObjectStream<Date>({ limit: { limiter: sync, name: "sendMessage" } }).readable.locked).toBe(false);
});

test("a key that may be undefined is a compile-time error, and the key may be left out", () => {
  const user: { id?: string } = {};
  const refused = (body: () => unknown) => expect(body).toThrow(/^`key` must be a string/);
  // @ts-expect-error the user may have no id
  refused(() => sync.limit("sendMessage", { key: user.id }));
  // @ts-expect-error the user may have no id
  refused(() => sync.limitAll([{ name: "sendMessage", key: user.id }]));
  // @ts-expect-error the user may have no id
  refused(() => sync.getValue("sendMessage", { key: user.id }));
  const options: LimitOptions = { key: "a", count: 2 };
  expect([sync.limit("sendMessage", options).ok, sync.limit("sendMessage", { count: 1 }).ok]).toEqual([true, true]);
});

test("a wrong field is a compile-time and a run-time error", () => {
  const refused = (body: () => unknown) => expect(body).toThrow(/^`\w+` must be /);
  // @ts-expect-error misspelt
  refused(() => sync.limit("sendMessage", { cuont: 2 }));
  // @ts-expect-error a string is no count
  refused(() => sync.limit("sendMessage", { count: "2" }));
  // @ts-expect-error a token bucket has no start
  refused(() => defineLimits({ one: { ...bucket, start: 5 } }));
  // @ts-expect-error no such kind
  refused(() => defineLimits({ one: { ...bucket, kind: "leaky bucket" } }));
  // @ts-expect-error no period
  refused(() => defineLimits({ one: { kind: "token bucket", rate: 1 } }));
  // @ts-expect-error a give is not reserved
  refused(() => sync.give("sendMessage", { reserve: true }));
});

test("functions that documented code takes out of an object are no methods, which linters would refuse", () => {
  // Where `used` were a method, its parameter could be narrower.
  // @ts-expect-error a function of any number is expected
  const spending: Spending = { decided: {} as AllDecision, used: (_: 7) => {} };
  // @ts-expect-error the same
  const learning: Pick<RateLimit, "learn"> = { learn: (_: Decision) => {} };
  expect([typeof spending.used, typeof learning.learn]).toEqual(["function", "function"]);
});
