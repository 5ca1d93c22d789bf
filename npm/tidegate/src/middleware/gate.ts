import { checkFields, fieldTable } from "../limit/config.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import { InputError, showInstead } from "../limit/errors.ts";
import type { ClientIpOptions } from "../http/client-ip.ts";
import {
  appendRateLimitHeaders,
  type HeaderTarget,
  type RateLimitHeaderOptions,
  rateLimitHeaders,
} from "../http/fields.ts";
import { type Problem, problem, statusOf } from "../http/problem.ts";
import type { Limiter, LimitRequest } from "../limiter/limiter.ts";
import type { Store } from "../stores/contract.ts";
import { clientKey, type Incoming } from "./client.ts";
import { follow, isPending, type Pending } from "./pending.ts";
import { type Ask, compile, type Rule, RULE_FIELDS } from "./rule.ts";
import { isSelection, type Selection } from "./selection.ts";
import { type Ledger, type Outcome, settleUp, type Worth } from "./settlement.ts";

/** What a request was told: one decision, or that of all its limits. */
export type Decided = Decision | AllDecision;

/** Settings that every middleware has. */
export interface GateOptions<R> {
  /** Where the client's address is, for limits without a `key`; by default the peer's, and no header is read. */
  client?: ClientIpOptions | undefined;
  /** Requests that are not limited at all. */
  skip?: ((request: R) => Pending<boolean>) | undefined;
  /** Decide and report, but never block and send no fields: to try a limit on real traffic. */
  shadow?: boolean | undefined;
  /** Which fields the response gets, or `false` for none; default the IETF draft-11's, and `Retry-After`. */
  headers?: false | Omit<RateLimitHeaderOptions, "jitter"> | undefined;
  /** Most of the wait that is added to `Retry-After`, so that clients do not come back together: 0 to 1; default 0.5. */
  jitter?: number | undefined;
  /**
   * After the response: how many tokens the request was worth. The difference to what it took is given back or charged;
   * `undefined` changes nothing. `({ status, aborted }) => (aborted || status >= 500 ? 0 : undefined)` refunds failures.
   */
  settle?: ((outcome: Outcome<R>) => Pending<Worth>) | undefined;
  /** Told every decision, also in shadow mode. What it throws fails the request. */
  onDecision?: ((decided: Decided, request: R) => void) | undefined;
  /** Told what went wrong after the response was sent; default: the first one goes to `console.error`. */
  onError?: ((error: unknown) => void) | undefined;
}

/** Several limits: the same for all requests, told per request, or by what tells them of itself (`definePolicies`). */
type Several<R, N extends string> =
  | readonly Rule<R, N>[]
  | ((request: R) => Pending<readonly Rule<R, N>[]>)
  | Selection<R>;

/** One rule, or with `limits` several that are taken all or nothing. */
export type Options<R, N extends string> = GateOptions<R> & (Rule<R, N> | { limits: Several<R, N> });

/** What the response to a denied request says. */
export interface Denial {
  readonly decided: Decided;
  /** 429; 503 where the store failed; 400 where no wait helps. */
  readonly status: number;
  /** The fields, which a middleware has set already where it can. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body: problem+json. */
  readonly problem: Problem;
}

const GATE = ["client", "skip", "shadow", "headers", "jitter", "settle", "onDecision", "onError"] as const;
const SINGLE = fieldTable(...GATE, ...RULE_FIELDS, "denied");
const SEVERAL = fieldTable(...GATE, "limits", "denied");

/** A request that was decided. */
export class Admission<R> {
  readonly decided: Decided;
  readonly #gate: Gate<R>;
  readonly #taken: readonly LimitRequest<string>[];
  readonly #request: R;

  constructor(gate: Gate<R>, request: R, taken: readonly LimitRequest<string>[], decided: Decided) {
    this.#gate = gate;
    this.#request = request;
    this.#taken = taken;
    this.decided = decided;
  }

  /** Not to be handled. */
  get blocked(): boolean {
    return !this.decided.ok && !this.#gate.shadow;
  }

  /** Whether {@link settle} is to be called in the end. */
  get settles(): boolean {
    return this.decided.ok && this.#gate.settle !== undefined;
  }

  #fields(): RateLimitHeaderOptions {
    const { headers = {}, jitter } = this.#gate;
    if (this.decided.ok || jitter === 0) return headers;
    const key = this.#taken.map(({ key = "" }) => key).join("\n");
    return { ...headers, jitter: { key, fraction: jitter } };
  }

  /** Writes the fields into a response. */
  tell(target: HeaderTarget): void {
    if (this.#gate.headers !== undefined && !this.#gate.shadow)
      appendRateLimitHeaders(target, this.decided, this.#fields());
  }

  /** What to answer where it is blocked. */
  denial(): Denial {
    const fields = this.#fields();
    return {
      decided: this.decided,
      status: statusOf(this.decided),
      headers: this.#gate.headers === undefined ? {} : rateLimitHeaders(this.decided, fields),
      problem: problem(this.decided, fields.jitter === undefined ? {} : { jitter: fields.jitter }) as Problem,
    };
  }

  /** Brings what was taken to what it was worth. Never throws: the response is gone. */
  async settle(end: Pick<Outcome<R>, "status" | "aborted" | "error">): Promise<void> {
    const { settle, ledger, report } = this.#gate;
    if (settle === undefined || !this.decided.ok) return;
    try {
      const worth = await settle({ ...end, request: this.#request, decided: this.decided });
      const decisions = "decisions" in this.decided ? this.decided.decisions : [this.decided];
      await settleUp(ledger, this.#taken, decisions, worth);
    } catch (error) {
      report(error);
    }
  }
}

/** What all middleware share: options, checked once, and the question that each request is to the limiter. */
export interface Gate<R> {
  readonly shadow: boolean;
  readonly headers: Omit<RateLimitHeaderOptions, "jitter"> | undefined;
  readonly jitter: number;
  readonly settle: GateOptions<R>["settle"];
  readonly ledger: Ledger;
  report(error: unknown): void;
  /** At once where everything it asks answers at once; `undefined` where the request is not limited. */
  admit(request: R, incoming: Incoming): Pending<Admission<R> | undefined>;
}

/** Makes the gate, or throws an `InputError` that names the option. */
export function gate<R, N extends string, S extends Store>(
  limiter: Limiter<N, S>,
  options: Options<R, NoInfer<N>>,
): Gate<R> {
  if (typeof limiter?.limit !== "function") throw notALimiter(limiter);
  if (typeof options !== "object" || options === null)
    throw new InputError("options", "an object with name or limits", options);
  const several = "limits" in options;
  checkFields(options, several ? SEVERAL : SINGLE, "a middleware");
  const { client, skip, shadow = false, headers = {}, jitter = 0.5, settle, onDecision, onError } = options;
  const { denied } = options as { denied?: unknown };
  for (const [field, hook] of Object.entries({ skip, settle, onDecision, onError, denied })) {
    if (hook !== undefined && typeof hook !== "function") throw new InputError(field, "a function", hook);
  }
  if (typeof shadow !== "boolean") throw new InputError("shadow", "true or false", shadow);
  if (typeof jitter !== "number" || !(jitter >= 0 && jitter <= 1))
    throw new InputError("jitter", "a number from 0 to 1", jitter);
  if (headers !== false && (typeof headers !== "object" || headers === null)) {
    throw new InputError("headers", "false, or an object with fields", headers);
  }
  const address = clientKey(client);
  let reported = false;
  const made: Gate<R> = {
    shadow,
    headers: headers === false ? undefined : headers,
    jitter,
    settle,
    ledger: limiter as unknown as Ledger,
    report:
      onError ??
      ((error) => {
        if (!reported) console.error("tidegate: a request could not be settled; further ones are not reported:", error);
        reported = true;
      }),
    admit: (request, incoming) => {
      if (skip === undefined) return ask(request, incoming);
      return follow(skip(request), (skipped) => (skipped ? undefined : ask(request, incoming)));
    },
  };
  const admitted = (request: R, taken: readonly LimitRequest<N>[], decided: Decided): Admission<R> => {
    onDecision?.(decided, request);
    return new Admission(made, request, taken, decided);
  };
  const all = (request: R, taken: readonly LimitRequest<N>[]): Pending<Admission<R>> =>
    follow(limiter.limitAll(taken) as Pending<AllDecision>, (decided) => admitted(request, taken, decided));
  const one = (request: R, taken: LimitRequest<N>): Pending<Admission<R>> => {
    const { name, key, count, reserve, config } = taken;
    const call = reserve === undefined && config === undefined ? { key, count } : { key, count, reserve, config };
    return follow(limiter.limit(name, call) as Pending<Decision>, (decided) => admitted(request, [taken], decided));
  };
  const ask = several ? asking(options.limits) : asked(compile<R, N>(ruleOf<R, N>(options), limiter.names, address));

  function asked(rule: Ask<R, N>): Gate<R>["admit"] {
    return (request, incoming) => follow(rule(request, incoming), (taken) => one(request, taken));
  }
  function asking(limits: Several<R, N>): Gate<R>["admit"] {
    if (isSelection<R>(limits)) {
      return (request, incoming) =>
        follow(limits.select(request, incoming, address), (taken) =>
          taken.length === 0 ? undefined : all(request, taken as readonly LimitRequest<N>[]),
        );
    }
    const compiled = typeof limits === "function" ? undefined : rules(limits);
    return (request, incoming) => {
      const asks = compiled ?? follow((limits as (request: R) => Pending<readonly Rule<R, N>[]>)(request), rules);
      return follow(asks, (asks) => {
        const taken = asks.map((rule) => rule(request, incoming));
        const ready = taken.some(isPending) ? Promise.all(taken) : (taken as LimitRequest<N>[]);
        return follow(ready, (ready) => all(request, ready));
      });
    };
  }
  function rules(limits: readonly Rule<R, N>[]): Ask<R, N>[] {
    if (!Array.isArray(limits))
      throw new InputError("limits", "an array of rules, a function that returns one, or policies", limits);
    return Array.from(limits as readonly Rule<R, N>[], (rule) => compile<R, N>(rule, limiter.names, address));
  }
  return made;
}

/** Throws where a middleware that wraps a handler has none, or has something else in its place. */
export function checkHandler(field: "handler" | "listener", handler: unknown): void {
  if (typeof handler === "function") return;
  throw new InputError(field, `a function, after the options: rateLimit(limits, options, ${field})`, handler);
}

function notALimiter(given: unknown): InputError {
  const { headers, raw, req } = Object(given) as Record<string, unknown>;
  // A framework that was handed the function itself calls it with a request.
  const got =
    headers === undefined && raw === undefined && req === undefined
      ? showInstead(given)
      : "a request; what is mounted is what rateLimit(limits, options) returns, not rateLimit itself";
  return new InputError("limiter", "what defineLimits returns", given, got);
}

/** The rule that stands among the other options. */
function ruleOf<R, N extends string>(options: Options<R, N>): Rule<R, N> {
  const given = options as unknown as Record<string, unknown>;
  return Object.fromEntries(
    RULE_FIELDS.filter((field) => Object.hasOwn(given, field)).map((field) => [field, given[field]]),
  ) as unknown as Rule<R, N>;
}
