/** Policies in force: check.ts reads their document, rule.ts matches requests, enforcement.ts enforces what matched. */
import type { Config } from "../limit/config.ts";
import { check, checkObject, checkTable, FLAG, functionThat } from "../limit/checks.ts";
import { isPromise } from "../limit/realms.ts";
import type { AllDecision } from "../limit/decision.ts";
import { InputError, showObject } from "../limit/errors.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { checkRequest } from "../limiter/calls.ts";
import { type Answer, LIMITER_OPTIONS, type LimiterOptions, type LimitRequest } from "../limiter/options.ts";
import type { Incoming } from "../middleware/client-key.ts";
import { follow, type MaybePromise } from "../limit/maybe-promise.ts";
import type { Selection } from "../middleware/selection.ts";
import type { MemoryStore } from "../stores/memory.ts";
import type { Store } from "../stores/contract.ts";
import { examine, PolicyError } from "./check.ts";
import type { PolicyDocument } from "./document.ts";
import { hasBlock, PolicyLimiter } from "./enforcement.ts";
import { type CompiledRule, compileRule } from "./rule.ts";

/** Settings of {@link definePolicies}: those of `defineLimits`, and the source of claims. */
export interface PoliciesOptions<R, S extends Store> extends LimiterOptions<S> {
  /**
   * Returns the claims of a request's verified token, such as `(request) => request.auth`; `undefined` without one. Required
   * if the document reads `jwt:`. Tokens are not decoded or verified here.
   */
  claims?: ((request: R) => MaybePromise<object | null | undefined>) | undefined;
}

/** The parts of a request that {@link Policies.limit} reads. */
export interface PolicyRequest {
  /** The client's key, for `ip:address`: the result of `clientIp` of `tidegate/http`. */
  readonly address?: string | undefined;
  /** A `Headers`, or an object of them; names in any case. */
  readonly headers?: Incoming["headers"];
  /** Including the query. */
  readonly url?: string | undefined;
  /** Claims of a verified token. */
  readonly claims?: object | null | undefined;
}

/** By names in lower case: an event of API Gateway v1 has those that the client wrote. Texts of one name are listed. */
function lowered(headers: Incoming["headers"]): Incoming["headers"] {
  const { get } = Object(headers) as { get?: unknown };
  if (typeof get === "function" || !Object.keys(Object(headers)).some((name) => /[A-Z]/.test(name))) return headers;
  const texts = new Map<string, unknown[]>();
  for (const [name, text] of Object.entries(headers as object)) {
    const lower = name.toLowerCase();
    if (typeof text === "string" || Array.isArray(text)) texts.set(lower, [...(texts.get(lower) ?? []), text].flat());
  }
  return Object.fromEntries(texts);
}

const CLAIMS = "a function that returns the claims of a verified token";
const OPTIONS = { claims: functionThat(CLAIMS), ...LIMITER_OPTIONS };

interface RuleSet {
  readonly rules: readonly CompiledRule[];
  readonly fallback: CompiledRule | undefined;
  readonly all: readonly CompiledRule[];
}

/** The rules in force, on one store. Made by {@link definePolicies}. */
export class Policies<R, S extends Store> implements Selection<R> {
  /**
   * The limiter: pass it to a middleware, with these policies as its `limits`. With the config of {@link configOf} it enforces
   * a rule's `shadow`, `onStoreError` and `block` also in calls of its own.
   */
  readonly limiter: Limiter<string, S>;
  readonly #claims: PoliciesOptions<R, S>["claims"];
  #rules: RuleSet;

  constructor(document: unknown, options: PoliciesOptions<R, S>) {
    checkTable("definePolicies", options, OPTIONS);
    const { claims, ...rest } = options;
    this.#claims = claims;
    this.#rules = this.#read(document);
    this.limiter = new PolicyLimiter<S>(rest);
  }

  /** The names of the rules in force, the fallback's last. */
  get names(): readonly string[] {
    return this.#rules.all.map(({ name }) => name);
  }

  /**
   * The config of a rule in force, or of its tier of that name; `policyTarget` adds the key. Throws an `InputError` if
   * there is no such rule.
   */
  configOf(name: string, tier?: string): Config {
    return this.#rule(name).config(tier);
  }

  /** The `limit_keys` of a rule in force, such as `["ip:address"]`. Throws an `InputError` if there is no such rule. */
  limitKeysOf(name: string): readonly string[] {
    return this.#rule(name).limitKeys;
  }

  /** Whether a rule in force is in shadow mode. Throws an `InputError` if there is no such rule. */
  isShadow(name: string): boolean {
    return this.#rule(name).shadow;
  }

  /**
   * Puts a rule into shadow mode, so that it denies no request, or enforces it: in this process, from the next request on, until
   * {@link reload} or the process ends. What the rule takes stays the same, so its keys keep their state. Throws an `InputError`
   * if there is no such rule, or `shadow` is not a boolean.
   *
   * ```ts
   * policies.setShadow("api", true); // lets all clients through; the metrics count what it would have denied
   * ```
   */
  setShadow(name: string, shadow: boolean): void {
    const found = this.#rule(name);
    check("shadow", shadow, FLAG);
    const { rules, fallback } = this.#rules;
    const changed = (rule: CompiledRule): CompiledRule => (rule === found ? rule.inShadow(shadow) : rule);
    this.#rules = ruleSet(rules.map(changed), fallback && changed(fallback));
  }

  /**
   * Replaces the document, from the next request on. A document with mistakes throws a {@link PolicyError}, and the old one
   * stays in force. State is stored by the rule's name and key, so limits keep it: a lowered capacity caps it, a raised one
   * fills at the new rate. On stores where each shard is its own row, limits with another `shards` start full.
   */
  reload(document: string | PolicyDocument | object): void {
    this.#rules = this.#read(document);
  }

  /**
   * The limits of a request, for a middleware: every rule that matches, or the fallback. `shadow`: the middleware denies
   * nothing, so that no denial counts towards a block.
   */
  select(
    request: R,
    incoming: Incoming,
    address: (incoming: Incoming) => string,
    shadow = false,
  ): MaybePromise<readonly LimitRequest<string>[]> {
    const rules = this.#rules;
    const found = this.#claims === undefined ? undefined : this.#claims(request);
    return follow(found, (claims) => select(rules, incoming, claims, () => address(incoming), shadow));
  }

  /** Whether denials of a selected request count towards a block of its key. */
  blocks(request: LimitRequest<string>): boolean {
    checkRequest(request);
    return hasBlock(request.config);
  }

  /**
   * Takes the tokens of all rules that match a request, all or nothing; `undefined` if no rule matches. For hosts without
   * a middleware, which does the same.
   *
   * ```ts
   * const decided = await policies.limit({ address: clientIp(request), headers, url, claims: verified.payload });
   * if (decided?.ok === false) return new Response(null, { status: 429, headers: rateLimitHeaders(decided) });
   * ```
   */
  limit(request: PolicyRequest): Answer<S, AllDecision> | undefined {
    checkObject("request", request, "an object");
    // They have none of the fields: no rule would match, and the request would have no limit.
    if (Array.isArray(request) || isPromise(request)) throw new InputError("request", "an object", request);
    const { address, headers, url, claims } = request;
    if (url !== undefined && typeof url !== "string") throw new InputError("url", "a string, or absent", url);
    const clientKey = (): string => {
      if (typeof address === "string") return address;
      const rule = "given if the document reads ip:address, such as the result of clientIp";
      throw new InputError("address", rule, address);
    };
    const taken = select(this.#rules, { headers: lowered(headers), url }, claims, clientKey);
    return taken.length === 0 ? undefined : this.limiter.limitAll(taken);
  }

  /** The names of a rule's tiers. Throws an `InputError` if there is no such rule. */
  tiersOf(name: string): readonly string[] {
    return this.#rule(name).tiers;
  }

  #rule(name: string): CompiledRule {
    const rule = this.#rules.all.find((one) => one.name === name);
    if (rule === undefined) throw new InputError("name", `one of the rules in force: ${this.names.join(", ")}`, name);
    return rule;
  }

  #read(document: unknown): RuleSet {
    const { rules, fallback, problems } = examine(document);
    if (problems.length > 0) throw new PolicyError(problems, document);
    const compiled = ruleSet(
      rules.map((rule) => compileRule(rule)),
      fallback && compileRule(fallback),
    );
    const reading = compiled.all.find((rule) => rule.claims !== undefined);
    if (reading !== undefined && this.#claims === undefined) {
      const what = `rule ${JSON.stringify(reading.name)} reads jwt:${reading.claims?.name}`;
      throw new InputError("claims", `${CLAIMS}: ${what}`, undefined);
    }
    return compiled;
  }
}

const ruleSet = (rules: readonly CompiledRule[], fallback: CompiledRule | undefined): RuleSet => ({
  rules,
  fallback,
  all: fallback === undefined ? rules : [...rules, fallback],
});

function select(
  { rules, fallback }: RuleSet,
  incoming: Incoming,
  claims: object | null | undefined,
  address: () => string,
  shadow = false,
): readonly LimitRequest<string>[] {
  // A promise has no claims: all clients would be taken for ones without a token.
  if (claims !== undefined && claims !== null && (typeof claims !== "object" || isPromise(claims))) {
    const rule = "an object, or undefined if there is no token";
    throw new InputError("claims", rule, claims, showObject(claims));
  }
  const parts = { incoming, claims: claims ?? undefined, address, shadow };
  const requests: LimitRequest<string>[] = [];
  let isLimited = false;
  const add = (rule: CompiledRule): void => {
    const request = rule.requestOf(parts);
    if (request === undefined) return;
    requests.push(request);
    isLimited ||= !rule.isTrial;
  };
  for (const rule of rules) add(rule);
  if (!isLimited && fallback !== undefined) add(fallback);
  return requests;
}

/**
 * Limits from a document, as an object or as JSON text. All rules that match a request apply in one decision, all or
 * nothing; if none matches, or only rules with `shadow: true`, the `fallback_limit` applies, and without one the request
 * is not limited.
 *
 * ```ts
 * const policies = definePolicies(readFileSync("policy.json", "utf8"), {
 *   store: redis(client),
 *   claims: (request: Request & { auth?: object }) => request.auth, // verified by an earlier middleware
 * });
 * app.use(rateLimit(policies.limiter, { limits: policies })); // of tidegate/express, /hono, /fetch, …
 * ```
 *
 * A rule in shadow mode (`shadow: true`) is decided after the others, by itself. It denies no request: its decision has `ok:
 * true`, and `shadow` with what it decided; no response has fields of it. `block` and `onStoreError` are those of a middleware
 * and of `defineLimits`, for one rule.
 *
 * An absent part of a key counts as its own value, so that leaving a header out does not evade a limit. A repeated
 * parameter counts as absent; of its values each matches, and the largest cost counts. So does a header that is an array;
 * hosts join a repeated one by commas. A stated cost that is absent or no plain decimal number takes the default; any
 * other is clamped to `min` and `max`.
 *
 * Throws a {@link PolicyError} with every mistake of the document, and an `InputError` if it reads `jwt:` and no
 * `claims` are given.
 */
export function definePolicies<R = unknown, S extends Store = MemoryStore>(
  document: string | PolicyDocument | object,
  options: PoliciesOptions<R, S> = {},
): Policies<R, S> {
  return new Policies<R, S>(document, options);
}
