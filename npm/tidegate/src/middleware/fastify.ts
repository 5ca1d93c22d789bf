/**
 * A hook and a plugin for Fastify 4 and 5; and a store for @fastify/rate-limit.
 *
 * @module
 */
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction, RouteOptions } from "fastify";
import type { HeaderTarget } from "../http/fields.ts";
import { check, FLAG } from "../limit/checks.ts";
import { InputError } from "../limit/errors.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { notALimiter } from "../limiter/check-limiter.ts";
import type { Incoming } from "./client-key.ts";
import { Gate } from "./gate.ts";
import { goOn, limitExchange, type NodeExchange, type NodeResponse } from "./node-response.ts";
import { privateField } from "./private-field.ts";
import { checkContext, choosesLimits, type Denial, type Options, overridden, type RequestDecision } from "./options.ts";

export { type FastifyHitStore, fastifyRateLimitStore } from "./drop-in/fastify-rate-limit.ts";
export type { HitOptions } from "./drop-in/options.ts";
export type { Denial, RequestDecision } from "./options.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The decision of the last limit that the request came through; absent before one, and if `skip` was true. */
    rateLimit: RequestDecision;
  }
  // A base, whose field another declaration may replace: @fastify/rate-limit has one of the same name.
  interface FastifyContextConfig extends RouteConfig {}
}

/** What routes have in `config`. */
interface RouteConfig {
  /**
   * With {@link rateLimitPlugin}: the limit of this route, or `false` for none. `enableDraftSpec` is of @fastify/rate-limit,
   * whose options can replace these, as TypeScript requires, only if they have a field in common.
   */
  rateLimit?: RouteOptionsOf | false | { enableDraftSpec?: unknown };
}

/** Returns the payload for a denied request; status and fields are set. */
export type FastifyDenied = (request: FastifyRequest, reply: FastifyReply, denial: Denial) => unknown;

/** Settings of {@link rateLimit}: {@link Options}. */
export type FastifyOptions<N extends string> = Options<FastifyRequest, N, FastifyDenied>;

/** A route's settings for {@link rateLimitPlugin}: those it has of its own replace the plugin's. */
export type RouteOptionsOf = Partial<FastifyOptions<string>>;

// HTTP/2, schemas and loggers have their own types.
// biome-ignore lint/suspicious/noExplicitAny: only the application determines them
type AnyRequest = FastifyRequest<any, any, any, any, any, any, any, any>;
// biome-ignore lint/suspicious/noExplicitAny: as above
type AnyReply = FastifyReply<any, any, any, any, any, any, any, any>;
/** What the plugin calls of an instance: of any copy of Fastify, as NestJS has its own, and with the fields of any plugins. */
interface AnyInstance {
  // biome-ignore lint/suspicious/noExplicitAny: overloads, one for each name
  addHook(name: string, hook: any): unknown;
}

/**
 * A hook of any application or route. It states what no type parameter of Fastify's is inferred from: a whole request here
 * would end the inference of a route's `query` and `body` by a type provider.
 */
export type FastifyHook = (
  request: Pick<AnyRequest, "raw">,
  reply: Pick<AnyReply, "raw">,
  done: HookHandlerDoneFunction,
) => void;

/**
 * Limits requests as an `onRequest` hook (or `preHandler`, if the key comes from earlier hooks), of an instance or of a
 * route. The decision is `request.rateLimit`; a denied request gets 429 with `Retry-After` and a problem+json, and errors
 * go to Fastify's error handler. A hook that is added twice decides once. If `trustProxy` is set, the client is
 * `request.ip`.
 *
 * ```ts
 * app.addHook("onRequest", rateLimit(limits, { name: "api" }));
 * app.get("/search", { onRequest: rateLimit(limits, { name: "search", count: { query: "n", max: 100 } }) }, handler);
 * ```
 *
 * Throws an `InputError` if an option is wrong.
 */
export function rateLimit<N extends string>(limiter: Limiter<N>, options: FastifyOptions<NoInfer<N>>): FastifyHook {
  if (typeof Object(limiter).addHook === "function")
    throw notALimiter(limiter, "a Fastify instance: `app.register` takes rateLimitPlugin");
  const made = new Gate(limiter, options, 'Fastify({ trustProxy: "10.0.0.0/8" })', privateField());
  const { denied } = options;
  return (request, reply, done) => {
    if (request.raw === undefined) return done(notARequest(request));
    goOn(
      () => limitExchange(made, new Exchange(request as AnyRequest, reply as AnyReply, denied)),
      () => done(),
      (error) => done(error as Error),
    );
  };
}

/** Throws in another framework. `register` calls a hook with the instance, where what is thrown would end the process. */
function notARequest(instance: object): InputError {
  if (!("addHook" in instance)) checkContext("Fastify", instance, undefined);
  return new InputError("hook", "added with `app.addHook`: `app.register` takes rateLimitPlugin", undefined);
}

class Exchange implements NodeExchange<FastifyRequest> {
  readonly request: AnyRequest;
  readonly incoming: Incoming;
  readonly once: object;
  readonly response: NodeResponse;
  readonly #reply: AnyReply;
  readonly #denied: FastifyDenied | undefined;

  constructor(request: AnyRequest, reply: AnyReply, denied: FastifyDenied | undefined) {
    const { headers, socket, url } = request.raw;
    this.request = request;
    // `ips` is an array if the application trusts proxies.
    this.incoming = { headers, socket, url, trusted: request.ips === undefined ? undefined : request.ip };
    this.once = request.raw;
    this.response = reply.raw;
    this.#reply = reply;
    this.#denied = denied;
  }

  get target(): HeaderTarget {
    return this;
  }

  getHeader(name: string): ReturnType<AnyReply["getHeader"]> {
    return this.#reply.getHeader(LOWER_CASE[name] ?? name);
  }

  setHeader(name: string, value: string): void {
    this.#reply.header(LOWER_CASE[name] ?? name, value);
  }

  attach(decision: RequestDecision): void {
    this.request.rateLimit = decision;
  }

  async refuse(denial: Denial): Promise<void> {
    const reply = this.#reply;
    reply.code(denial.status);
    if (this.#denied === undefined) return void reply.header("Content-Type", denial.contentType).send(denial.body);
    try {
      const payload: unknown = await this.#denied(this.request, reply, denial);
      if (!reply.sent) reply.send(payload);
    } catch (error) {
      reply.code(200); // Fastify would answer the error with a status from 400 on that is already set
      throw error;
    }
  }
}

/** Fastify keeps fields by their names in lower case, which take it half the time to find. */
const LOWER_CASE: Readonly<Record<string, string>> = { "RateLimit-Policy": "ratelimit-policy", RateLimit: "ratelimit" };

/** In a route's config: the hook of the limit that the route chooses itself. */
const CHOSEN = Symbol("tidegate");
type Config = RouteConfig & { [plugin: symbol]: FastifyHook };
/** In a route's config, by plugin: the route has its own hook, or no limit. */
const ELSEWHERE: FastifyHook = (_request, _reply, done) => done();
const HOOKS = ["onRequest", "preValidation", "preHandler"] as const;

/** Settings of {@link rateLimitPlugin}: those of {@link rateLimit}, for every route, and these. */
export type PluginOptions = FastifyOptions<string> & {
  /** What `defineLimits` returned. */
  limiter: Limiter;
  /** Where requests are limited: default `"onRequest"`; `"preHandler"` if keys come from earlier hooks or the body. */
  hook?: (typeof HOOKS)[number] | undefined;
  /** Whether routes without `config.rateLimit` are limited; default true. */
  global?: boolean | undefined;
};

/**
 * Limits the routes of the instance that registers it, and those of its children. A route's `config.rateLimit` has settings of
 * its own, or is `false`.
 *
 * ```ts
 * await app.register(rateLimitPlugin, { limiter: limits, name: "api" });
 * app.get("/search", { config: { rateLimit: { name: "search", count: 5 } } }, handler);
 * app.get("/health", { config: { rateLimit: false } }, handler);
 * ```
 *
 * Throws an `InputError` if an option is wrong: when the plugin is registered, when a route is added, or, if the route
 * was added before the plugin had loaded, to Fastify's error handler at each request.
 */
export function rateLimitPlugin(app: AnyInstance, options: PluginOptions, done: (error?: Error) => void): void {
  let mistake: Error | undefined;
  try {
    limitRoutes(app, options);
  } catch (error) {
    // An error that is thrown here would crash the process: Fastify calls plugins on a later tick.
    mistake = error as Error;
  }
  done(mistake);
}

function limitRoutes(app: AnyInstance, options: PluginOptions): void {
  const { limiter, hook = "onRequest", global = true, ...shared } = options;
  if (!HOOKS.includes(hook)) throw new InputError("hook", `one of ${HOOKS.join(", ")}`, hook);
  check("global", global, FLAG);
  const everywhere = rateLimit(limiter, shared);
  const limitOf = (own: RouteConfig["rateLimit"]): FastifyHook | undefined => {
    if (own === false || (own === undefined && !global)) return undefined;
    if (own === undefined) return everywhere;
    if (typeof own !== "object" || own === null)
      throw new InputError("config.rateLimit", "an object of options, or false", own);
    return rateLimit(limiter, overridden(shared, own) as FastifyOptions<string>);
  };
  const here = Symbol("tidegate");
  app.addHook("onRoute", (route: RouteOptions) => {
    const config: Config = { ...route.config, [here]: ELSEWHERE };
    const own = config.rateLimit;
    const limit = limitOf(own);
    route.config = config as NonNullable<typeof route.config>;
    if (limit === undefined) return;
    const hooks = (at: (typeof HOOKS)[number]): FastifyHook[] =>
      [(route[at] as FastifyHook | FastifyHook[] | undefined) ?? []].flat();
    if (own && choosesLimits(own)) {
      // A limit that the route chooses is taken once, by the innermost plugin that sees it.
      const outer = config[CHOSEN];
      for (const at of HOOKS) if (outer !== undefined) route[at] = hooks(at).filter((one) => one !== outer) as never;
      config[CHOSEN] = limit;
    }
    route[hook] = [limit, ...hooks(hook)] as never;
  });
  // If `register` is not awaited, the plugin loads after the routes that follow it: `onRoute` is called for none of them.
  app.addHook(hook, (request: AnyRequest, reply: AnyReply, done: HookHandlerDoneFunction) => {
    if (request.is404) return done();
    const config = request.routeOptions.config as Config;
    const own = config.rateLimit;
    if (config[here] === undefined) {
      const chooses = own && choosesLimits(own);
      const limit = (chooses && config[CHOSEN] !== undefined ? undefined : limitOf(own)) ?? ELSEWHERE;
      if (chooses) config[CHOSEN] = limit;
      config[here] = limit;
    }
    config[here](request, reply, done);
  });
}
// As fastify-plugin does: hooks are added to the instance that registers the plugin, not to a child of it.
Object.assign(rateLimitPlugin, {
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "tidegate",
  [Symbol.for("plugin-meta")]: { name: "tidegate", fastify: ">=4.23" },
});
