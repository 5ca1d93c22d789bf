import type { Config } from "../limit/config.ts";

/**
 * Where in a request a text is: the client's address (`"ip:address"`), a header, a parameter of the query, or a claim of
 * a token that something else has verified (`"jwt:sub"`).
 */
export type DescriptorText = "ip:address" | `header:${string}` | `query:${string}` | `jwt:${string}`;

/** The rate: per period, or per second under either alias. Exactly one of the three. */
type RateText =
  | { rate: number; period: number }
  | { tokens_per_second: number; period?: never }
  | { rps: number; period?: never };

/** A tier's numbers: {@link Config}'s, or their aliases. */
export type TierConfig = RateText & {
  /** Most tokens that accumulate; default the rate. */
  capacity?: number;
  /** The same as `capacity`. */
  burst?: number;
  maxReserved?: number;
};

/** A rule's numbers: {@link Config}'s, or their aliases; and the cost's short forms. */
export type AlgorithmConfig = TierConfig & {
  /** Fixed window only. */
  start?: number;
  shards?: number;
  cost_source?: "fixed" | `header:${string}` | `query:${string}`;
  fixed_cost?: number;
  default_cost?: number;
};

/** What a rule's requests cost: tokens; or what the client states, held between bounds. */
export type RuleCost =
  | number
  | {
      /** Where the client states it. `"fixed"`: nowhere, every request costs `default`. */
      source: "fixed" | `header:${string}` | `query:${string}`;
      /** Tokens where nothing usable is stated; default 1. */
      default?: number;
      /** The least, whatever is stated: 0 to `default`; default 1, or `default` where that is less. */
      min?: number;
      /** The most, whatever is stated; default the most that the limit ever grants. */
      max?: number;
    };

/** One rule: which requests, whose limit, what a request takes, and the limit. */
export interface PolicyRule {
  /** The limit's name, where its state is: 1 to 64 characters of `A-Z a-z 0-9 _ . -`. */
  name: string;
  /** What the key is made of; `[]` is one limit for all. */
  limit_keys: readonly DescriptorText[];
  algorithm: "token_bucket" | "fixed_window";
  algorithm_config: AlgorithmConfig;
  /** What must all be equal for the rule to apply; numbers and booleans are compared as text. */
  match?: Readonly<Partial<Record<DescriptorText, string | number | boolean>>>;
  cost?: RuleCost;
  /** Numbers of plans in place of the rule's, on the same state: who changes plans keeps what is owed. */
  tiers?: { by: DescriptorText; settings: Readonly<Record<string, TierConfig>> };
  /** Whether tokens may be owed, up to `maxReserved`. */
  reserve?: boolean;
}

/** A policy document. Its JSON Schema is `tidegate/policy.schema.json`. */
export interface PolicyDocument {
  $schema?: string;
  /** 1 to 100. All that match a request apply to it, in one decision. */
  rules: readonly PolicyRule[];
  /** What applies where no rule matches. Without one such a request is not limited. */
  fallback_limit?: Omit<PolicyRule, "name" | "match"> & { name?: string };
}

/** One mistake in a document. */
export interface PolicyProblem {
  /** The rule it is in, from 0; `undefined` for what concerns the document or its fallback. */
  readonly rule?: number | undefined;
  /** That rule's name, where it has one. */
  readonly name?: string | undefined;
  /** Where it is, from the root: `rules[0].algorithm_config.burst`. */
  readonly path: string;
  readonly expected: string;
  readonly got: string;
  /** What may have been meant, or what to do. */
  readonly hint?: string | undefined;
  /** All of it as one sentence. */
  readonly message: string;
}

/** A place in a request, as the check gives it. */
export interface Descriptor {
  readonly source: "ip" | "header" | "jwt" | "query";
  readonly name: string;
}

/** A limit, as the check gives it. */
export interface CheckedLimit {
  readonly config: Config;
  /** The most tokens that it ever grants at once. */
  readonly grantable: number;
}

/** A rule, as the check gives it. */
export interface CheckedRule {
  readonly name: string;
  readonly keys: readonly Descriptor[];
  readonly matches: readonly { readonly at: Descriptor; readonly equals: string }[];
  readonly cost: {
    readonly stated?: Descriptor;
    readonly default: number;
    readonly min: number;
    readonly max?: number;
  };
  readonly reserve: boolean;
  readonly limit: CheckedLimit;
  readonly tiers?: {
    readonly by: Descriptor;
    readonly settings: readonly { readonly name: string; readonly limit: CheckedLimit }[];
  };
}

/** What the check answers. */
export interface Checked {
  readonly rules: readonly CheckedRule[];
  readonly fallback?: CheckedRule;
  readonly problems: readonly PolicyProblem[];
}
