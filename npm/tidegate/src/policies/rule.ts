/** Reads the parts of a request that rules name, and matches them. */
import type { Config } from "../limit/config.ts";
import { prepare } from "../limit/limit.ts";
import type { LimitRequest } from "../limiter/options.ts";
import type { Incoming } from "../middleware/client-key.ts";
import { headerValues, queryValues, statedCount } from "../middleware/count.ts";
import { escalation } from "../middleware/escalation.ts";
import type { CheckedLimit, CheckedRule, Descriptor } from "./document.ts";
import { enforce, type Enforcement } from "./enforcement.ts";
import { policyKey } from "./key.ts";

interface RequestParts {
  readonly incoming: Incoming;
  /** Claims of a token that something else has verified. */
  readonly claims: object | undefined;
  /** The client's key, computed only for a rule that reads it. */
  readonly address: () => string;
  /** The middleware denies nothing, so no denial counts towards a block. */
  readonly shadow: boolean;
}

/** A claim as text; anything but a string, a finite number or a boolean counts as absent. */
function claimIn(claims: object | undefined, name: string): string | undefined {
  if (claims === undefined || !Object.hasOwn(claims, name)) return undefined;
  const value = (claims as Record<string, unknown>)[name];
  if (typeof value === "string") return value;
  return Number.isFinite(value) || typeof value === "boolean" ? String(value) : undefined;
}

/** What a request has at this place: several texts if a parameter is repeated, or a header whose texts the host lists. */
function values({ source, name }: Descriptor): (parts: RequestParts) => readonly (string | undefined)[] {
  if (source === "ip") return ({ address }) => [address()];
  if (source === "jwt") return ({ claims }) => [claimIn(claims, name)];
  const read = source === "header" ? headerValues : queryValues;
  return ({ incoming }) => read(name, incoming);
}

/** The text at this place; `undefined` if it is repeated: handlers read the first or the last, and a client may add any. */
function reader(at: Descriptor): (parts: RequestParts) => string | undefined {
  const read = values(at);
  return (parts) => {
    const found = read(parts);
    return found.length === 1 ? found[0] : undefined;
  };
}

/** Whether a request has this value. Of repeated ones each counts: repeating it must not avoid the rule. */
function matcher({ at, equals }: CheckedRule["matches"][number]): (parts: RequestParts) => boolean {
  const read = values(at);
  return (parts) => read(parts).includes(equals);
}

/** The `limit_keys` of a checked rule, as its document has them. */
export const limitKeysOf = ({ keys }: CheckedRule): readonly string[] =>
  keys.map(({ source, name }) => (source === "ip" ? "ip:address" : `${source}:${name}`));

/** A limit of a rule: its config, and the cost of a request. */
interface Choice {
  readonly config: Config;
  readonly withoutBlock: Config;
  cost(incoming: Incoming): number;
}

function choice(rule: CheckedRule, { config, grantable }: CheckedLimit, block: Enforcement["block"]): Choice {
  const { name, cost, shadow, onStoreError } = rule;
  const known = (how: Enforcement): Config =>
    enforce(prepare(name, { ...config, ...(onStoreError && { onStoreError }) }), how);
  const own = known({ shadow, block });
  const withoutBlock = block === undefined ? own : known({ shadow, block: undefined });
  const configs = { config: own, withoutBlock };
  const { stated, default: otherwise, min, max = grantable } = cost;
  if (stated === undefined) return { ...configs, cost: () => otherwise };
  const bounds = { default: otherwise, min, max };
  const at = stated.source === "header" ? { header: stated.name } : { query: stated.name };
  return { ...configs, cost: statedCount({ ...at, ...bounds }) };
}

export interface CompiledRule {
  readonly name: string;
  readonly limitKeys: readonly string[];
  readonly claims: Descriptor | undefined;
  readonly tiers: readonly string[];
  readonly shadow: boolean;
  /** In shadow mode by its document, not by `setShadow`: it leaves requests to the fallback, as if it were absent. */
  readonly isTrial: boolean;
  /** The rule in shadow mode, or enforced. */
  inShadow(shadow: boolean): CompiledRule;
  /** The limit's config, or the tier's if it exists. */
  config(tier?: string): Config;
  /** The limiter's request for a request of HTTP; `undefined` if the rule does not match. */
  requestOf(parts: RequestParts): LimitRequest<string> | undefined;
}

export function compileRule(rule: CheckedRule, tried: boolean = rule.shadow): CompiledRule {
  const { name, reserve } = rule;
  const matches = rule.matches.map(matcher);
  const keys = rule.keys.map(reader);
  const block = rule.block && escalation(rule.block, [name]);
  const own = choice(rule, rule.limit, block);
  const tiers = new Map(rule.tiers?.settings.map((tier) => [tier.name, choice(rule, tier.limit, block)]));
  const tierOf = rule.tiers === undefined ? () => undefined : reader(rule.tiers.by);
  const chosen = (tier: string | undefined): Choice => (tier === undefined ? own : (tiers.get(tier) ?? own));
  const descriptors = [
    ...rule.keys,
    ...rule.matches.map(({ at }) => at),
    ...(rule.tiers === undefined ? [] : [rule.tiers.by]),
  ];
  return {
    name,
    limitKeys: limitKeysOf(rule),
    tiers: [...tiers.keys()],
    shadow: rule.shadow,
    isTrial: tried && rule.shadow,
    inShadow: (shadow) => compileRule({ ...rule, shadow }, tried),
    claims: descriptors.find(({ source }) => source === "jwt"),
    config: (tier) => chosen(tier).config,
    requestOf(parts) {
      if (!matches.every((isMatch) => isMatch(parts))) return undefined;
      const { config, withoutBlock, cost } = chosen(tierOf(parts));
      const key = policyKey(...keys.map((read) => read(parts)));
      const request = { name, count: cost(parts.incoming), config: parts.shadow ? withoutBlock : config, reserve };
      return key === undefined ? request : Object.assign(request, { key });
    },
  };
}
