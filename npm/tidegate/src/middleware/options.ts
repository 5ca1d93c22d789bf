/** The options that all middleware share, and their checks. */
import type { ClientIpOptions } from "../http/client-ip.ts";
import { checkHeaderOptions, type RateLimitHeaderOptions } from "../http/fields.ts";
import { NEVER, type Problem } from "../http/problem.ts";
import { ANY, type Check, check, checkTable, FLAG, FUNCTION, integerFrom } from "../limit/checks.ts";
import { InputError, showInstead } from "../limit/errors.ts";
import { checkJitter, FRACTION, type JitterOptions } from "../limit/jitter.ts";
import type { RequestDecision } from "./request-decision.ts";
import type { EscalatingBlock } from "./escalation.ts";
import { refuseForeign } from "./foreign-options.ts";
import type { MaybePromise } from "../limit/maybe-promise.ts";
import { type InlineRule, type NamedRule, RULE, RULE_FIELDS, type Several } from "./rule.ts";
import { notALimiter } from "../limiter/check-limiter.ts";
import type { Worth } from "../limiter/settlement.ts";

export type { RequestDecision } from "./request-decision.ts";

/** How a request ended. */
export interface Outcome<R> {
  readonly request: R;
  /** The response's status; 499 if the client of a `fetch` handler left before there was one. */
  readonly status: number;
  /** The client left before the response was complete. */
  readonly aborted: boolean;
  /** What the handler threw, if the framework reports it. */
  readonly error?: unknown;
  /** What a server action of Next.js returned. */
  readonly result?: unknown;
  /** The decision that allowed it. */
  readonly decision: RequestDecision;
}

/** What the response to a denied request has. */
export interface Denial {
  /** The denied decision. */
  readonly decision: RequestDecision;
  /** `statusCode` (default 429); 503 if the store failed; `never` (default 400) if no wait helps. */
  readonly status: number;
  /** The rate-limit fields, which the adapter has already set. */
  readonly headers: Readonly<Record<string, string>>;
  /** The problem of RFC 9457. */
  readonly problem: Problem;
  /** The body: the problem as JSON, or `message`. */
  readonly body: string;
  /** The body's media type. */
  readonly contentType: string;
}

/** Settings that every middleware has. `R` is the framework's request or context, `D` its `denied` function. */
export interface GateOptions<R, D> {
  /** Where the client's address is, for limits without a `key`. Default: the peer's, and no header is read. */
  client?: ClientIpOptions | undefined;
  /** Requests that are not limited at all. */
  skip?: ((request: R) => MaybePromise<boolean>) | undefined;
  /** Decide and report, but deny nothing and set no fields: to try a limit on real traffic. */
  shadow?: boolean | undefined;
  /** Which fields the response gets, or `false` for none; default the IETF draft-11's, and `Retry-After`. */
  headers?: false | Omit<RateLimitHeaderOptions, "jitter"> | undefined;
  /**
   * What is added to `Retry-After`, so that clients do not return together: a fraction of the wait from 0 to 1 (default
   * 0.5), at most 30 s; or `{ fraction, most }` with another bound in ms. If all clients share the limit, it differs by their
   * addresses.
   */
  jitter?: number | Omit<JitterOptions, "key"> | undefined;
  /** The status of a denial that a wait helps: 400 to 599; default 429. */
  statusCode?: number | undefined;
  /** The status of a denial that no wait helps: 400 (the default), 422, or 413 if the count is the size of the content. */
  never?: 400 | 413 | 422 | undefined;
  /**
   * The body of a denied request instead of the problem+json: a string, an object sent as JSON, or a function that returns
   * either.
   */
  message?:
    | string
    | object
    | ((request: R, denial: Omit<Denial, "body" | "contentType">) => MaybePromise<string | object>)
    | undefined;
  /**
   * Blocks a key that is denied repeatedly: `{ after: 5, for: ["1m", "10m", "1h"] }`. Denials during a block do not count;
   * `limits.unblock` ends it. No effect in shadow mode. It costs one store call per denial, and up to nine for one that begins a
   * block.
   */
  block?: EscalatingBlock | undefined;
  /**
   * Answers a denied request, instead of the default status and body; the fields are already set. An error goes to the
   * framework. Not called if the response has already begun: the response is ended, and `onError` reports that.
   */
  denied?: D | undefined;
  /**
   * Called after the response; returns how many tokens the request was worth. The difference is given back or charged;
   * `undefined` changes nothing. With several limits, a number applies to each of them, and an object such as
   * `{ tokens: 900 }` to those that it names. `aborted` is true if the client left before the response was complete. For `fetch`
   * handlers, Next.js and Hono, except on @hono/node-server, it is called when the handler has returned a response: if its
   * body is a stream, return a promise of the tokens.
   */
  settle?: ((outcome: Outcome<R>) => MaybePromise<Worth>) | undefined;
  /** Give back the tokens of requests whose response has a status below 400, as for failed logins. Not with `settle`. */
  skipSuccessfulRequests?: boolean | undefined;
  /**
   * Give back the tokens of requests whose response has a status of 400 or above, or that were aborted. Not with
   * `settle`.
   */
  skipFailedRequests?: boolean | undefined;
  /** Called with every decision, even in shadow mode. An error fails the request. */
  onDecision?: ((decision: RequestDecision, request: R) => unknown) | undefined;
  /** Called with an error that no response can carry; default: the first one goes to `console.error`. */
  onError?: ((error: unknown) => unknown) | undefined;
}

/** Several limits on a request, taken all or nothing. */
export interface SeveralOptions<R, N extends string, D> extends GateOptions<R, D> {
  /** The limits, 1 to 100. Each has its own `name`, `key`, `count` and `config`. */
  limits: Several<R, N>;
}
/** One limit on a request, defined here. */
export interface InlineOptions<R, D> extends GateOptions<R, D>, InlineRule<R> {
  limits?: undefined;
}
/** One limit on a request, by its name in `defineLimits`. */
export interface NamedOptions<R, N extends string, D> extends GateOptions<R, D>, NamedRule<R, N> {
  limits?: undefined;
}

/** One limit, or with `limits` several that are taken all or nothing. */
export type Options<R, N extends string, D> = SeveralOptions<R, N, D> | InlineOptions<R, D> | NamedOptions<R, N, D>;

const OBJECT: Check = {
  expects: "an object with name or limits",
  accepts: (options) => typeof options === "object" && options !== null,
};
const GATE: Readonly<Record<keyof GateOptions<never, never>, Check>> = {
  client: ANY, // checked by `clientKey`
  skip: FUNCTION,
  shadow: FLAG,
  headers: { expects: "false, or an object with fields", accepts: (h) => h === false || OBJECT.accepts(h) },
  jitter: {
    expects: "a number from 0 to 1, or { fraction, most }",
    accepts: (jitter) => OBJECT.accepts(jitter) || FRACTION.accepts(jitter),
  },
  statusCode: integerFrom("an integer from 400 to 599", 400, 599),
  never: NEVER,
  message: {
    expects: "a string, an object, or a function that returns one",
    accepts: (message) => OBJECT.accepts(message) || typeof message === "string" || typeof message === "function",
  },
  block: {
    expects: '{ after, for }, such as { after: 5, for: ["1m", "10m"] }',
    accepts: (block) => OBJECT.accepts(block),
  },
  denied: FUNCTION,
  settle: FUNCTION,
  skipSuccessfulRequests: FLAG,
  skipFailedRequests: FLAG,
  onDecision: FUNCTION,
  onError: FUNCTION,
};
const SINGLE = { ...GATE, ...RULE };
const SEVERAL = { ...GATE, limits: ANY };

export interface CheckedOptions<R>
  extends Readonly<Pick<GateOptions<R, unknown>, "skip" | "never" | "message" | "settle" | "onDecision" | "onError">> {
  readonly client: ClientIpOptions | undefined;
  readonly shadow: boolean;
  /** Absent if the response gets no fields. */
  readonly headers: Omit<RateLimitHeaderOptions, "jitter"> | undefined;
  readonly jitter: Omit<JitterOptions, "key">;
  readonly statusCode: number;
}

/** Returns options that are an object; throws otherwise. */
export const optionsOf = <T>(options: T): T => check("options", options, OBJECT);

/** Checks the options when the middleware is made; throws an `InputError` that names the option. */
export function checkGateOptions<R, N extends string, D>(options: Options<R, N, D>): CheckedOptions<R> {
  const known = optionsOf(options).limits === undefined ? SINGLE : SEVERAL;
  refuseForeign(options, known);
  if (known === SEVERAL) {
    for (const field of RULE_FIELDS) {
      const value = (options as unknown as Record<string, unknown>)[field];
      if (value !== undefined) throw new InputError(field, "absent with `limits`, whose rules have it", value);
    }
  }
  checkTable("a middleware", options, known);
  const { skip, shadow = false, headers = {}, jitter = 0.5, statusCode = 429, never, message, denied } = options;
  const { client, onDecision, onError } = options;
  if (headers !== false) checkHeaderOptions(headers);
  if (message !== undefined && denied !== undefined)
    throw new InputError("message", "absent with `denied`, which answers the request", message);
  const spread = typeof jitter === "number" ? { fraction: jitter } : jitter;
  checkJitter({ ...spread, key: "" });
  const hooks = { client, skip, message, settle: settleOf(options), onDecision, onError };
  return { ...hooks, shadow, headers: headers === false ? undefined : headers, jitter: spread, statusCode, never };
}

/** `settle`, or the function that `skipSuccessfulRequests` and `skipFailedRequests` abbreviate. */
function settleOf<R>({
  settle,
  skipSuccessfulRequests: successful = false,
  skipFailedRequests: failed = false,
}: GateOptions<R, unknown>): GateOptions<R, unknown>["settle"] {
  if (!successful && !failed) return settle;
  const field = successful ? "skipSuccessfulRequests" : "skipFailedRequests";
  if (settle !== undefined) throw new InputError(field, "absent with `settle`, which has the same effect", true);
  return ({ status, aborted }) => ((aborted || status >= 400 ? failed : successful) ? 0 : undefined);
}

/** Throws unless it is a limiter. A framework that was given `rateLimit` itself calls it with a request. */
export function checkMounted(limiter: unknown): void {
  const { limit, headers, raw, req } = Object(limiter) as Record<string, unknown>;
  if (typeof limit === "function") return;
  const isRequest = headers !== undefined || raw !== undefined || req !== undefined;
  const itself = "a request; mount what rateLimit(limits, options) returns, not rateLimit itself";
  throw notALimiter(limiter, isRequest ? itself : showInstead(limiter));
}

/** Throws if a middleware that wraps a handler has something else in its place. */
export function checkHandler(field: "handler" | "listener" | "action", handler: unknown): void {
  if (typeof handler === "function") return;
  const name = field === "action" ? "rateLimitAction" : "rateLimit";
  throw new InputError(field, `a function, after the options: ${name}(limits, options, ${field})`, handler);
}

/** Whether a route's settings name their own limits. */
export const choosesLimits = (own: object): boolean => "name" in own || "limits" in own;

/** A route's settings over the shared ones. A route that chooses its limits does not get the shared rule. */
export function overridden(shared: object, own: object): object {
  const chooses = choosesLimits(own);
  const kept = Object.entries(shared).filter(([field]) => !chooses || !RULES.includes(field));
  return { ...Object.fromEntries(kept), ...own };
}

const RULES: readonly string[] = [...RULE_FIELDS, "limits"];

/** Throws if a middleware was mounted in another framework, whose contexts lack `found`. */
export function checkContext(framework: string, context: unknown, found: unknown): void {
  if (found !== undefined) return;
  const rule = `${framework}'s: import the rateLimit of your framework, such as that of tidegate/express or tidegate/fetch`;
  throw new InputError("context", rule, context);
}
