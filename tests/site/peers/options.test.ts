/** Each page about another limiter lists every option of that limiter: the types of the peers complete these lists. */
import "reflect-metadata";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RateLimitArgs, RateLimitConfig, RateLimiter } from "@convex-dev/rate-limiter";
import type { CreateRateLimitOptions, RateLimitPluginOptions } from "@fastify/rate-limit";
import { ThrottlerGuard, type ThrottlerModuleOptions, type ThrottlerOptions } from "@nestjs/throttler";
import type { Ratelimit, RatelimitConfig } from "@upstash/ratelimit";
import type { Options, RateLimitInfo, RateLimitRequestHandler } from "express-rate-limit";
import type { HonoConfigProps } from "hono-rate-limiter";
import type * as flexible from "rate-limiter-flexible";
import { expect, test } from "vitest";
import { root } from "../../readme/blocks.ts";

/** What an option of several types has, from all of them. */
type Names<T> = T extends unknown ? keyof T : never;
/** Each of these names once: the compiler reports one that is missing or that does not exist. */
const all = <Name extends string>(names: Record<Name, true>): string[] => Object.keys(names);

type FastifyOptions = Names<CreateRateLimitOptions> | Names<RateLimitPluginOptions>;
type NestOptions = Names<Exclude<ThrottlerModuleOptions, unknown[]>> | Names<ThrottlerOptions>;
type FlexibleOptions = Names<
  ConstructorParameters<
    | typeof flexible.RateLimiterRedis
    | typeof flexible.RateLimiterValkey
    | typeof flexible.RateLimiterValkeyGlide
    | typeof flexible.RateLimiterPostgres
    | typeof flexible.RateLimiterDrizzle
    | typeof flexible.RateLimiterMongo
    | typeof flexible.RateLimiterDynamo
    | typeof flexible.RateLimiterCluster
    | typeof flexible.RLWrapperBlackAndWhite
    | typeof flexible.RLWrapperTimeouts
  >[0]
>;
type FlexibleMethods = keyof (flexible.RateLimiterRedis & flexible.RateLimiterMemory & flexible.RateLimiterQueue);

/** What a subclass of the throttler's guard replaces: its methods, but for Nest's own and two that convert. */
const METHODS = Object.getOwnPropertyNames(ThrottlerGuard.prototype).filter(
  (name) => !["constructor", "onModuleInit", "canActivate", "toNumber", "resolveValue"].includes(name),
);

const PAGES: Readonly<Record<string, readonly string[]>> = {
  "express-rate-limit": [
    ...all<Names<Options>>({
      windowMs: true,
      limit: true,
      message: true,
      statusCode: true,
      legacyHeaders: true,
      standardHeaders: true,
      identifier: true,
      retryAfter: true,
      requestPropertyName: true,
      skipFailedRequests: true,
      skipSuccessfulRequests: true,
      keyGenerator: true,
      ipv6Subnet: true,
      handler: true,
      skip: true,
      requestWasSuccessful: true,
      store: true,
      validate: true,
      headers: true,
      max: true,
      passOnStoreError: true,
      logger: true,
    }),
    ...all<keyof RateLimitInfo>({ limit: true, used: true, remaining: true, resetTime: true, key: true }),
    ...all<Exclude<keyof RateLimitRequestHandler, keyof CallableFunction>>({ resetKey: true, getKey: true }),
    ...["resetAll", "shutdown"],
  ],
  "hono-rate-limiter": [
    ...all<Names<HonoConfigProps>>({
      windowMs: true,
      limit: true,
      keyGenerator: true,
      message: true,
      statusCode: true,
      handler: true,
      standardHeaders: true,
      requestPropertyName: true,
      requestStorePropertyName: true,
      skip: true,
      skipFailedRequests: true,
      skipSuccessfulRequests: true,
      requestWasSuccessful: true,
      store: true,
      binding: true,
    }),
  ],
  "fastify-rate-limit": all<FastifyOptions>({
    max: true,
    timeWindow: true,
    global: true,
    hook: true,
    keyGenerator: true,
    ipv6Subnet: true,
    allowList: true,
    errorResponseBuilder: true,
    onExceeding: true,
    onExceeded: true,
    onBanReach: true,
    ban: true,
    continueExceeding: true,
    exponentialBackoff: true,
    addHeaders: true,
    addHeadersOnExceeding: true,
    enableDraftSpec: true,
    skipOnError: true,
    store: true,
    redis: true,
    nameSpace: true,
    cache: true,
    groupId: true,
  }),
  "nestjs-throttler": all<NestOptions>({
    throttlers: true,
    name: true,
    limit: true,
    ttl: true,
    blockDuration: true,
    ignoreUserAgents: true,
    skipIf: true,
    getTracker: true,
    generateKey: true,
    setHeaders: true,
    errorMessage: true,
    ipv6SubnetPrefix: true,
    storage: true,
  }).concat(METHODS),
  "rate-limiter-flexible": [
    ...all<Exclude<FlexibleOptions, "limiter">>({
      points: true,
      duration: true,
      blockDuration: true,
      keyPrefix: true,
      execEvenly: true,
      execEvenlyMinDelayMs: true,
      insuranceLimiter: true,
      storeClient: true,
      storeType: true,
      inMemoryBlockOnConsumed: true,
      inMemoryBlockDuration: true,
      blockOnConsumed: true,
      dbName: true,
      tableName: true,
      tableCreated: true,
      schemaName: true,
      schema: true,
      clearExpiredByTimeout: true,
      rejectIfRedisNotReady: true,
      rejectIfValkeyNotReady: true,
      useRedisPackage: true,
      useRedis3AndLowerPackage: true,
      customIncrTtlLuaScript: true,
      customFunction: true,
      customFunctionLibName: true,
      indexKeyPrefix: true,
      disableIndexesCreation: true,
      dynamoTableOpts: true,
      ttlSet: true,
      timeoutMs: true,
      blackList: true,
      whiteList: true,
      isBlackListed: true,
      isWhiteListed: true,
      runActionAnyway: true,
    }),
    ...all<Exclude<FlexibleMethods, FlexibleOptions | "msDuration" | "msBlockDuration">>({
      consume: true,
      penalty: true,
      reward: true,
      get: true,
      set: true,
      block: true,
      delete: true,
      getKey: true,
      parseKey: true,
      deleteInMemoryBlockedAll: true,
      dump: true,
      restore: true,
      getTokensRemaining: true,
      removeTokens: true,
    }),
    ...all<Exclude<keyof flexible.RateLimiterRes, "toString" | "toJSON">>({
      remainingPoints: true,
      consumedPoints: true,
      msBeforeNext: true,
      isFirstInDuration: true,
    }),
    ...["maxQueueSize", "customDuration"],
  ],
  convex: [
    ...all<Names<RateLimitConfig>>({
      kind: true,
      rate: true,
      period: true,
      capacity: true,
      maxReserved: true,
      start: true,
      shards: true,
      applyUpdates: true,
    }),
    ...all<keyof RateLimitArgs>({ name: true, key: true, count: true, reserve: true, throws: true, config: true }),
    ...all<Exclude<keyof RateLimiter, "component" | "limits">>({
      check: true,
      limit: true,
      reset: true,
      getValue: true,
      hookAPI: true,
    }),
    ...["sampleShards", "useRateLimit", "isRateLimitError", "calculateRateLimit"],
  ],
  upstash: [
    ...all<Names<RatelimitConfig>>({
      redis: true,
      limiter: true,
      prefix: true,
      ephemeralCache: true,
      timeout: true,
      analytics: true,
      cacheScripts: true,
      enableProtection: true,
      denyListThreshold: true,
      dynamicLimits: true,
      enableTelemetry: true,
    }),
    ...all<keyof Ratelimit>({
      limit: true,
      blockUntilReady: true,
      resetUsedTokens: true,
      getRemaining: true,
      setDynamicLimit: true,
      getDynamicLimit: true,
    }),
    ...all<keyof NonNullable<Parameters<Ratelimit["limit"]>[1]>>({
      rate: true,
      ip: true,
      userAgent: true,
      country: true,
      geo: true,
    }),
    ...all<keyof Awaited<ReturnType<Ratelimit["limit"]>>>({
      success: true,
      limit: true,
      remaining: true,
      reset: true,
      pending: true,
      reason: true,
      deniedValue: true,
    }),
  ],
};

test.each(Object.entries(PAGES))("the page from %s lists every option", (page, options) => {
  const text = readFileSync(join(root, `npm/site/migrate/${page}.md`), "utf8");
  const [, section = ""] = text.split("## Every option");
  const [table = ""] = /^\|[\s\S]*?\n\n/m.exec(`${section}\n\n`) ?? [];
  const listed = [...table.matchAll(/^\| (.+?) \| /gm)].map(([, option = ""]) => option).join("\n");
  const missing = options.filter((option) => !new RegExp(`\\b${option}\\b`).test(listed));
  expect(missing).toEqual([]);
});
