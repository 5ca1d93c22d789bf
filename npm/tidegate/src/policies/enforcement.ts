import type { Config, OnStoreError } from "../limit/config.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import { type Answer, Limiter, type LimiterOptions, type LimitOptions, type LimitRequest } from "../limiter/limiter.ts";
import { escalated, type Escalation, escalation } from "../middleware/escalation.ts";
import { follow, type Pending, together } from "../middleware/pending.ts";
import type { Call, Store } from "../stores/contract.ts";
import type { CheckedRule } from "./document.ts";

/** How the limit of a rule is enforced. */
interface Enforcement {
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

/** The setting of a rule for a store that fails, as a part of its config. */
export const withoutStore = ({ onStoreError }: CheckedRule): { onStoreError?: OnStoreError } =>
  onStoreError === undefined ? {} : { onStoreError };

/** Returns the function that makes a config be enforced as the rule says; `trial`: without blocks. */
export function enforcing({ name, shadow, block }: CheckedRule): (config: Config, trial: boolean) => Config {
  const own = block === undefined ? undefined : escalation(block, [name]);
  return (config, trial) => {
    const how = { shadow, block: trial ? undefined : own };
    if (how.shadow || how.block !== undefined) enforcements.set(config, how);
    return config;
  };
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

/** The decision where every limit is in shadow mode. */
const NONE_ENFORCED: AllDecision = { ok: true, retryAt: undefined, retryAfter: undefined, decisions: [] };

/** The limiter of policies: it enforces limits as the rules of their configs say. */
export class PolicyLimiter<S extends Store> extends Limiter<string, S> {
  constructor(options: LimiterOptions<S>) {
    super({}, options);
  }

  override limit(name: string, options?: LimitOptions): Answer<S, Decision> {
    const how = enforcementOf(options?.config);
    if (options === undefined || how === undefined) return super.limit(name, options as LimitOptions);
    const decided = super.limit(name, silent(options)) as Pending<Decision>;
    const enforced = follow(decided, (decision) => {
      if (how.shadow) return shadowed(decision);
      return decision.ok ? decision : (how.block?.(this, { ...options, name }, decision) ?? decision);
    });
    if (options.throws !== true) return enforced as Answer<S, Decision>;
    return follow(enforced, (decision) => this.granted(name, decision)) as Answer<S, Decision>;
  }

  override check(name: string, options?: LimitOptions): Answer<S, Decision> {
    const how = enforcementOf(options?.config);
    if (options === undefined || how?.shadow !== true) return super.check(name, options as LimitOptions);
    const decided = super.check(name, silent(options)) as Pending<Decision>;
    return follow(decided, shadowed) as Answer<S, Decision>;
  }

  override limitAll(requests: readonly LimitRequest<string>[]): Answer<S, AllDecision> {
    return this.#several("take", requests);
  }

  override checkAll(requests: readonly LimitRequest<string>[]): Answer<S, AllDecision> {
    return this.#several("check", requests);
  }

  /**
   * Enforced limits are taken all or nothing. Then each limit in shadow mode is taken by itself, or only checked where the
   * request is denied: as if it were the next one to be enforced.
   */
  #several(op: "take" | "check", requests: readonly LimitRequest<string>[]): Answer<S, AllDecision> {
    const calls = this.callsOf(op, requests);
    const hows = requests.map(({ config }) => enforcementOf(config));
    if (hows.every((how) => how === undefined)) return this.decideCalls(calls);
    const isShadow = (_: unknown, i: number): boolean => hows[i]?.shadow === true;
    const isEnforced = (_: unknown, i: number): boolean => hows[i]?.shadow !== true;
    const enforced = calls.filter(isEnforced);
    const decided = enforced.length === 0 ? NONE_ENFORCED : this.decideCalls(enforced);
    const counted = follow(decided as Pending<AllDecision>, (all) => {
      if (op === "check" || all.ok) return all;
      const taken = requests.filter(isEnforced);
      return escalated(taken, all, (request, decision) => {
        return enforcementOf(request.config)?.block?.(this, request, decision) ?? decision;
      });
    });
    if (enforced.length === calls.length) return counted as Answer<S, AllDecision>;
    const spread = (all: AllDecision): Pending<AllDecision> => {
      const shadows = calls.filter(isShadow).map((call) => this.#alone({ ...call, op: all.ok ? op : "check" }));
      return follow(together(shadows), (shadows) => {
        const [left, right] = [all.decisions.values(), shadows.values()];
        const decisions = calls.map((_, i) => (isShadow(_, i) ? right : left).next().value as Decision);
        return { ...all, decisions };
      });
    };
    return follow(counted, spread) as Answer<S, AllDecision>;
  }

  #alone(call: Call): Pending<Decision> {
    const decided = this.decideCalls([call]) as Pending<AllDecision>;
    return follow(decided, ({ decisions: [decision] }) => shadowed(decision as Decision));
  }
}
