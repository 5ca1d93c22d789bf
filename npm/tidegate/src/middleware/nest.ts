/**
 * A module, a guard and decorators for NestJS 10 to 12, on Express and on Fastify; and a storage for @nestjs/throttler.
 *
 * @module
 */
import {
  type CanActivate,
  createParamDecorator,
  type DynamicModule,
  type ExecutionContext,
  HttpException,
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  type OnModuleInit,
  type Provider,
  SetMetadata,
} from "@nestjs/common";
import { APP_GUARD, ModulesContainer, Reflector } from "@nestjs/core";
import { check, FLAG } from "../limit/checks.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { Gate } from "./gate.ts";
import { limitExchange } from "./node-response.ts";
import { type Denial, type Options, overridden, type RequestDecision } from "./options.ts";
import { follow, type MaybePromise } from "../limit/maybe-promise.ts";
import { type Exchanged, exchanged } from "./nest-context.ts";

export type { HitOptions } from "./drop-in/options.ts";
export { type ThrottlerStorage, throttlerStorage } from "./drop-in/throttler.ts";
export type { Denial, RequestDecision } from "./options.ts";

/** Returns the exception for a denied request; the fields are set. */
export type NestDenied<R> = (request: R, denial: Denial) => MaybePromise<Error>;

/**
 * Settings of {@link rateLimitGuard} and {@link RateLimit}. `R` is the platform's request (of a WebSocket message, its
 * client), such as `Request` of express: annotate the parameter of a function, `key: (request: Request) => …`.
 */
// biome-ignore lint/suspicious/noExplicitAny: only the application determines its platform
export type NestOptions<N extends string, R = any> = Options<R, N, NestDenied<R>>;

/** Settings of {@link RateLimitModule}: of every route, or with decorators of some. */
export type NestModuleOptions<N extends string> = NestOptions<NoInfer<N>> & {
  /** What `defineLimits` returned. */
  limiter: Limiter<N>;
};

/** Settings of {@link RateLimitModule.forRootAsync}. */
export interface NestModuleAsyncOptions<N extends string> extends Pick<ModuleMetadata, "imports"> {
  /** What `useFactory` receives. */
  inject?: Parameters<typeof Inject>[0][] | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: Nest injects what `inject` lists
  useFactory: (...injected: any[]) => MaybePromise<NestModuleOptions<N>>;
  /** Whether routes without a decorator are limited too; default true. */
  global?: boolean | undefined;
}

const OPTIONS = Symbol.for("tidegate.nest.options");
const METADATA = "tidegate:rate-limit";

/**
 * Limits a route or a controller by settings of its own, instead of the module's.
 *
 * ```ts
 * @Post("login") @RateLimit({ name: "login", key: (request: Request) => request.body.email })
 * ```
 */
export const RateLimit = (options: NestOptions<string>): MethodDecorator & ClassDecorator =>
  SetMetadata(METADATA, options);

/** Does not limit a route or a controller. */
export const SkipRateLimit = (): MethodDecorator & ClassDecorator => SetMetadata(METADATA, false);

/** By resolver's call: the resolvers of a request run at the same time. */
const ofResolvers = new WeakMap<object, RequestDecision>();

/**
 * The decision on a request, as a parameter of a handler: `index(@RateLimitDecision() decision: RequestDecision)`;
 * `undefined` if the request was not limited. In GraphQL it is the resolver's own; in a gateway that on the client's latest
 * message.
 */
export const RateLimitDecision: () => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext) => {
    const { request, once = request } = exchanged(context);
    const isResolver = context.getType<string>() === "graphql";
    return isResolver ? ofResolvers.get(once) : (request as { rateLimit?: RequestDecision }).rateLimit;
  },
);

/**
 * A guard, for `@UseGuards` or `app.useGlobalGuards`, in HTTP, GraphQL and WebSocket contexts. The decision is
 * `request.rateLimit`; a denied request gets 429 with `Retry-After` and a problem+json, and no line in the log. In GraphQL
 * the context needs the request: `context: ({ req, res }) => ({ req, res })`.
 *
 * ```ts
 * @UseGuards(rateLimitGuard(limits, { name: "api" }))
 * ```
 *
 * Throws an `InputError` if an option is wrong.
 */
export function rateLimitGuard<N extends string>(
  limiter: Limiter<N>,
  options: NestOptions<NoInfer<N>>,
): { canActivate(context: ExecutionContext): boolean | Promise<boolean> } {
  const setting = 'app.set("trust proxy", 1) on Express, new FastifyAdapter({ trustProxy: "10.0.0.0/8" })';
  const made = new Gate(limiter, options, setting);
  return { canActivate: (context) => activate(made, options.denied, exchanged(context)) };
}

function activate<R>(gate: Gate<R>, denied: NestDenied<R> | undefined, parts: Exchanged): boolean | Promise<boolean> {
  const request = parts.request as R & { rateLimit?: RequestDecision };
  const refuse = (denial: Denial): MaybePromise<never> => {
    const made = denied === undefined ? parts.exception(denial, HttpException) : denied(request, denial);
    return follow(made, (error) => {
      throw error;
    });
  };
  return limitExchange(gate, {
    ...parts,
    request,
    throws: true,
    attach: (decision) => {
      request.rateLimit = decision;
      ofResolvers.set(parts.once ?? request, decision);
    },
    refuse,
  }) as boolean | Promise<boolean>;
}

/** The guards of a module's options, by those options and by those of its decorators. */
const guardsOf = new WeakMap<object, WeakMap<object, ReturnType<typeof rateLimitGuard>>>();

/**
 * The guard of {@link RateLimitModule}, for `@UseGuards` if the module is not global. Nest makes one for each module that
 * uses it. They share their guards, so that a request that comes through two of them is decided once.
 */
export class RateLimitGuard implements CanActivate, OnModuleInit {
  readonly #options: NestModuleOptions<string>;
  readonly #modules: ModulesContainer;
  readonly #reflector: Reflector;
  readonly #guards: WeakMap<object, ReturnType<typeof rateLimitGuard>>;

  constructor(options: NestModuleOptions<string>, reflector: Reflector, modules: ModulesContainer) {
    this.#options = options;
    this.#reflector = reflector;
    this.#modules = modules;
    this.#guards = guardsOf.get(options) ?? new WeakMap();
    guardsOf.set(options, this.#guards);
    this.#guard(options);
  }

  /** Makes the guards of all decorated routes, so that a wrong option stops the application's start. */
  onModuleInit(): void {
    for (const { controllers, providers } of this.#modules.values()) {
      for (const { metatype } of [...controllers.values(), ...providers.values()]) {
        const prototype: unknown = (metatype as { prototype?: unknown } | null)?.prototype;
        if (typeof metatype !== "function" || typeof prototype !== "object" || prototype === null) continue;
        // Among the methods is the class itself, as the constructor.
        for (const { value: target } of Object.values(Object.getOwnPropertyDescriptors(prototype))) {
          if (typeof target !== "function") continue;
          const own = this.#reflector.get<NestOptions<string> | false | undefined>(METADATA, target);
          if (own !== undefined && own !== false) this.#guard(own);
        }
      }
    }
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const targets = [context.getHandler(), context.getClass()];
    const own = this.#reflector.getAllAndOverride<NestOptions<string> | false | undefined>(METADATA, targets);
    return own === false || this.#guard(own ?? this.#options).canActivate(context);
  }

  #guard(options: object): ReturnType<typeof rateLimitGuard> {
    let guard = this.#guards.get(options);
    if (guard === undefined) {
      const { limiter, ...shared } = this.#options;
      const given = options === this.#options ? shared : overridden(shared, options);
      guard = rateLimitGuard(limiter, given as NestOptions<string>);
      this.#guards.set(options, guard);
    }
    return guard;
  }
}
// The decorators as functions: the build does not compile their syntax.
Injectable()(RateLimitGuard);
Inject(OPTIONS)(RateLimitGuard, undefined, 0);
Inject(Reflector)(RateLimitGuard, undefined, 1);
Inject(ModulesContainer)(RateLimitGuard, undefined, 2);

/**
 * Limits every route of the application; {@link RateLimit} and {@link SkipRateLimit} change that for a controller or a route.
 *
 * ```ts
 * @Module({ imports: [RateLimitModule.forRoot({ limiter: limits, name: "api" })] })
 * export class AppModule {}
 * ```
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest's modules are classes
export class RateLimitModule {
  /** With settings that exist when the module is declared. Throws an `InputError` if one is wrong. */
  static forRoot<N extends string>(options: NestModuleOptions<N> & { global?: boolean | undefined }): DynamicModule {
    const { global, ...rest } = options;
    const { limiter, ...guarded } = rest;
    rateLimitGuard(limiter, guarded);
    return moduleOf({ provide: OPTIONS, useValue: rest }, [], global);
  }

  /** With settings that other providers make, such as a configuration service or a database pool. */
  static forRootAsync<N extends string>(options: NestModuleAsyncOptions<N>): DynamicModule {
    const { imports = [], inject = [], useFactory, global } = options;
    return moduleOf({ provide: OPTIONS, useFactory, inject: inject as never }, imports, global);
  }
}
Module({})(RateLimitModule);

function moduleOf(options: Provider, imports: NonNullable<ModuleMetadata["imports"]>, global = true): DynamicModule {
  check("global", global, FLAG);
  const everywhere: Provider[] = global ? [{ provide: APP_GUARD, useExisting: RateLimitGuard }] : [];
  const providers = [options, RateLimitGuard, ...everywhere];
  return { module: RateLimitModule, global: true, imports, providers, exports: [OPTIONS, RateLimitGuard] };
}
