import type { Config } from "../limit/config.ts";
import { prepared } from "../limit/evaluate.ts";
import type { LimitRequest } from "../limiter/limiter.ts";
import type { Incoming } from "../middleware/client.ts";
import { headerOf, queryOf, statedCost } from "../middleware/cost.ts";
import type { CheckedLimit, CheckedRule, Descriptor } from "./document.ts";
import { policyKey } from "./key.ts";

/** What rules read of a request. */
export interface Asked {
  readonly incoming: Incoming;
  /** Claims of a token that something else has verified. */
  readonly claims: object | undefined;
  /** The client's key, worked out where a rule reads it. */
  readonly address: () => string;
}

/** A claim as text: what is neither a text, a finite number nor a boolean is not there. */
function claimOf(name: string): (asked: Asked) => string | undefined {
  return ({ claims }) => {
    if (claims === undefined || !Object.hasOwn(claims, name)) return undefined;
    const value = (claims as Record<string, unknown>)[name];
    if (typeof value === "string") return value;
    return Number.isFinite(value) || typeof value === "boolean" ? String(value) : undefined;
  };
}

/** What reads a place of a request. */
function reader({ source, name }: Descriptor): (asked: Asked) => string | undefined {
  if (source === "ip") return ({ address }) => address();
  if (source === "jwt") return claimOf(name);
  const read = source === "header" ? headerOf(name) : queryOf(name);
  return ({ incoming }) => read(incoming);
}

/** A limit of a rule: its config, and what a request costs there. */
interface Choice {
  readonly config: Config;
  cost(incoming: Incoming): number;
}

function choice({ name, cost }: CheckedRule, { config, grantable }: CheckedLimit): Choice {
  const known = prepared(name, config);
  const { stated, default: otherwise, min, max = grantable } = cost;
  if (stated === undefined) return { config: known, cost: () => otherwise };
  const bounds = { default: otherwise, min, max };
  const place = stated.source === "header" ? { header: stated.name } : { query: stated.name };
  return { config: known, cost: statedCost({ ...place, ...bounds }) };
}

/** A rule, compiled once. */
export interface CompiledRule {
  readonly name: string;
  /** Whether it reads claims. */
  readonly claims: Descriptor | undefined;
  /** The limit's config; of a tier, where there is one of that name. */
  config(tier?: string): Config;
  /** What to ask the limiter for a request; nothing where the rule does not match. */
  ask(asked: Asked): LimitRequest<string> | undefined;
}

/** Compiles a rule that the check found right. */
export function compileRule(rule: CheckedRule): CompiledRule {
  const { name, reserve } = rule;
  const matches = rule.matches.map(({ at, equals }) => ({ read: reader(at), equals }));
  const keys = rule.keys.map(reader);
  const own = choice(rule, rule.limit);
  const tiers = new Map(rule.tiers?.settings.map((tier) => [tier.name, choice(rule, tier.limit)]));
  const tierOf = rule.tiers === undefined ? () => undefined : reader(rule.tiers.by);
  const chosen = (tier: string | undefined): Choice => (tier === undefined ? own : (tiers.get(tier) ?? own));
  const places = [
    ...rule.keys,
    ...rule.matches.map(({ at }) => at),
    ...(rule.tiers === undefined ? [] : [rule.tiers.by]),
  ];
  return {
    name,
    claims: places.find(({ source }) => source === "jwt"),
    config: (tier) => chosen(tier).config,
    ask(asked) {
      for (const { read, equals } of matches) if (read(asked) !== equals) return undefined;
      const { config, cost } = chosen(tierOf(asked));
      const key = policyKey(...keys.map((read) => read(asked)));
      return { name, key, count: cost(asked.incoming), config, ...(reserve ? { reserve } : {}) };
    },
  };
}
