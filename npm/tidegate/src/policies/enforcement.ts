/** How the limit of a rule is enforced: in shadow mode, with blocks, without the store. */
import type { Config } from "../limit/config.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import { callLimit } from "../limit/limit.ts";
import { callOf, checkRequests } from "../limiter/calls.ts";
import { grantedOrThrow, Limiter } from "../limiter/limiter.ts";
import {
  type Answer,
  checkLimiterOptions,
  keyed,
  type LimiterOptions,
  type LimitOptions,
  type LimitRequest,
} from "../limiter/options.ts";
import { escalated, type Escalation } from "../middleware/escalation.ts";
import { follow, type MaybePromise, together } from "../limit/maybe-promise.ts";
import type { Store } from "../stores/contract.ts";

/** How the limit of a rule is enforced. */
export interface Enforcement {
  readonly shadow: boolean;
  readonly block: Escalation | undefined;
}

/**
 * By the config that a rule compiled: requests and direct calls pass it on as it is. So a request that was selected before a
 * reload is enforced as its rule was.
 */
const enforcements = new WeakMap<Config, Enforcement>();

const enforcementOf = (config: Config | undefined): Enforcement | undefined =>
  config === undefined ? undefined : enforcements.get(config);

/** Whether denials on this limit count towards a block of their key. */
export const hasBlock = (config: Config | undefined): boolean => enforcementOf(config)?.block !== undefined;

/** Makes the limit of a config be enforced so. */
export function enforce(config: Config, how: Enforcement): Config {
  if (how.shadow || how.block !== undefined) enforcements.set(config, how);
  return config;
}

/** The decision of a limit in shadow mode: allowed, with what the limit decided. */
export function shadowed(decision: Decision): Decision {
  const { ok, retryAt, retryAfter, reserved, reason } = decision;
  const shadow = { ok, retryAt, retryAfter, reserved, reason };
  return {
    ...decision,
    ok: true,
    retryAt: undefined,
    retryAfter: undefined,
    reserved: false,
    reason: undefined,
    shadow,
  };
}

/** The options of a call that throws for no denial. */
const silent = (options: LimitOptions): LimitOptions =>
  options.throws === true ? { ...options, throws: false } : options;

/** The decision if every limit is in shadow mode. */
const NONE_ENFORCED: AllDecision = { ok: true, retryAt: undefined, retryAfter: undefined, decisions: [] };

/** A request of its own, with the fields of a prototype, too. */
const requestOf = (name: string, { key, count, reserve, config }: LimitOptions): LimitRequest<string> => ({
  name,
  count,
  reserve,
  config,
  ...keyed(key),
});
const copied = (request: LimitRequest<string>): LimitRequest<string> => requestOf(request.name, request);

/** The limiter of policies: it enforces limits by the rules of their configs. */
export class PolicyLimiter<S extends Store> extends Limiter<string, S> {
  constructor(options: LimiterOptions<S>) {
    super({}, checkLimiterOptions(options));
  }

  override limit(name: string, options?: LimitOptions): Answer<S, Decision> {
    const how = enforcementOf(options?.config);
    if (options === undefined || how === undefined) return super.limit(name, options as LimitOptions);
    const decided = super.limit(name, silent(options));
    // Copied now: the caller may change its object later.
    const request = requestOf(name, options);
    const enforced = follow(decided, (decision) => {
      if (how.shadow) return shadowed(decision);
      return decision.ok ? decision : (how.block?.(this, request, decision) ?? decision);
    });
    if (options.throws !== true) return enforced as Answer<S, Decision>;
    return follow(enforced, (decision) => grantedOrThrow(this.store, name, decision)) as Answer<S, Decision>;
  }

  override check(name: string, options?: LimitOptions): Answer<S, Decision> {
    const how = enforcementOf(options?.config);
    if (options === undefined || how?.shadow !== true) return super.check(name, options as LimitOptions);
    const decided = super.check(name, silent(options));
    return follow(decided, shadowed) as Answer<S, Decision>;
  }

  override limitAll(requests: readonly LimitRequest<string>[]): Answer<S, AllDecision> {
    return this.#several("take", requests) as Answer<S, AllDecision>;
  }

  override checkAll(requests: readonly LimitRequest<string>[]): Answer<S, AllDecision> {
    return this.#several("check", requests) as Answer<S, AllDecision>;
  }

  /**
   * Enforced limits are taken all or nothing. Then each limit in shadow mode is taken by itself, or only checked if the
   * request is denied: as if it were the next one to be enforced.
   */
  #several(op: "take" | "check", requests: readonly LimitRequest<string>[]): MaybePromise<AllDecision> {
    const decide = (op: "take" | "check", requests: readonly LimitRequest<string>[]): MaybePromise<AllDecision> =>
      op === "take" ? super.limitAll(requests) : super.checkAll(requests);
    checkRequests(requests);
    // A copy, as `map` and `filter` would skip the holes of an array.
    const given = Array.from(requests);
    const hows = given.map((request) => enforcementOf(Object(request).config as Config | undefined));
    if (hows.every((how) => how === undefined)) return decide(op, requests);
    const isShadow = hows.map((how) => how?.shadow === true);
    const trials = given.filter((_, i) => isShadow[i]);
    const enforced = given.filter((_, i) => !isShadow[i]);
    // Checked before the first request takes tokens.
    for (const request of trials) callOf(op, request, (name, config) => callLimit(name, config as Config));
    const decided = enforced.length === 0 ? NONE_ENFORCED : decide(op, enforced);
    // Copied now: the caller may change its objects later.
    const [later, denied] = [trials.map(copied), enforced.map(copied)];
    const counted = follow(decided, (all) => {
      if (op === "check" || all.ok) return all;
      const count = (request: LimitRequest<string>, decision: Decision) =>
        enforcementOf(request.config)?.block?.(this, request, decision) ?? decision;
      return escalated(denied, all, count);
    });
    // The usual case: the decisions need not be copied.
    if (trials.length === 0) return counted;
    const spread = (all: AllDecision): MaybePromise<AllDecision> =>
      follow(together(later.map((request) => decide(all.ok ? op : "check", [request]))), (tried) => {
        const left = all.decisions.values();
        const right = tried.flatMap(({ decisions }) => decisions.map(shadowed)).values();
        const decisions = isShadow.map((shadow) => (shadow ? right : left).next().value as Decision);
        return { ...all, decisions };
      });
    return follow(counted, spread);
  }
}
