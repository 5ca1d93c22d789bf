/** The types of a document of policies. */
import type { Config, OnStoreError, Start } from "../limit/config.ts";
import type { Duration } from "../limit/duration.ts";
import type { EscalatingBlock } from "../middleware/escalation.ts";

/**
 * A text of a request: the client's address (`"ip:address"`), a header, a parameter of the query, or a claim of a verified
 * token (`"jwt:sub"`).
 */
export type DescriptorText = "ip:address" | `header:${string}` | `query:${string}` | `jwt:${string}`;

/** The rate: per period, or per second under either alias. Exactly one of the three. */
type RateText =
  | { rate: number; period: Duration }
  | { tokens_per_second: number; period?: never }
  | { rps: number; period?: never };

/** A tier's numbers: {@link Config}'s, or their aliases. */
export type TierConfig = RateText & {
  /** Most tokens that accumulate; default the rate. */
  capacity?: number;
  /** The same as `capacity`. */
  burst?: number;
  /** Most tokens that may be owed, with `reserve`; default unlimited. */
  maxReserved?: number;
};

/** A rule's numbers: {@link Config}'s, or their aliases; and the cost's short forms. */
export type AlgorithmConfig = TierConfig & {
  /** Where windows start, as in {@link Config}. Fixed window only. */
  start?: Start | Duration;
  /** Rows that share the limit: 1 to 65,536; default 1. */
  shards?: number;
  /** Where the cost is, instead of the rule's `cost`: `fixed_cost`, or what the client states, else `default_cost`. */
  cost_source?: "fixed" | `header:${string}` | `query:${string}`;
  /** Tokens of a request: above 0; default 1. */
  fixed_cost?: number;
  /** Tokens if the client states no valid cost: above 0; default 1. */
  default_cost?: number;
};

/** The cost of a rule's requests: tokens; or the cost that the client states, clamped. */
export type RuleCost =
  | number
  | {
      /** Where the client states it. `"fixed"`: every request costs `default`. */
      source: "fixed" | `header:${string}` | `query:${string}`;
      /** Tokens if no valid cost is stated; default 1. */
      default?: number;
      /** The least cost: 0 to `default`; default 1, or `default` if that is less. */
      min?: number;
      /** The highest cost; default the most that the limit ever grants. */
      max?: number;
    };

/** One rule: which requests match, and their key, cost and limit. */
export interface PolicyRule {
  /** The limit's name, under which its state is stored: 1 to 64 characters of `A-Z a-z 0-9 _ . -`. */
  name: string;
  /** The parts of the key; `[]` is one limit for all. */
  limit_keys: readonly DescriptorText[];
  /** The kind of limit. */
  algorithm: "token_bucket" | "fixed_window";
  /** The limit's numbers. */
  algorithm_config: AlgorithmConfig;
  /**
   * Values that must all be equal for the rule to apply; numbers and booleans are compared as text. Of a repeated parameter of
   * the query, or a header that is an array, one value is enough.
   */
  match?: Readonly<Partial<Record<DescriptorText, string | number | boolean>>>;
  /** Tokens of a request; default 1. */
  cost?: RuleCost;
  /** Limits by plan instead of the rule's, on the same state: a client that changes plans keeps it. */
  tiers?: { by: DescriptorText; settings: Readonly<Record<string, TierConfig>> };
  /** Whether tokens may be owed, up to `maxReserved`. */
  reserve?: boolean;
  /** Decide and report, but deny no request and set no fields: to try a rule on real traffic. */
  shadow?: boolean;
  /** What this rule does when the store fails; default the limiter's. */
  onStoreError?: OnStoreError;
  /**
   * Blocks a key that is denied repeatedly: `{ after: 5, for: ["1m", "10m", "1h"] }`. The rule's name then has at most 56
   * characters. Denials during a block do not count. No effect in shadow mode. It costs one store call per denial, and up to
   * nine for one that begins a block.
   */
  block?: EscalatingBlock;
}

/** A policy document. Its JSON Schema is `tidegate/policy.schema.json`. */
export interface PolicyDocument {
  $schema?: string;
  /** 1 to 100. All that match a request apply, in one decision. */
  rules: readonly PolicyRule[];
  /** Applies if no rule matches. Without one, such a request is not limited. */
  fallback_limit?: Omit<PolicyRule, "name" | "match"> & { name?: string };
}

/** One mistake in a document. */
export interface PolicyProblem {
  /** The rule's index, from 0; `undefined` for the document or its fallback. */
  readonly rule?: number | undefined;
  /** That rule's name, if it has one. */
  readonly name?: string | undefined;
  /** The path from the root: `rules[0].algorithm_config.burst`. */
  readonly path: string;
  /** What is allowed there. */
  readonly expected: string;
  /** What is there instead, as text. */
  readonly got: string;
  /** A suggestion. */
  readonly hint?: string | undefined;
  /** The mistake as one sentence. */
  readonly message: string;
}

/** A text of a request, as the check returns it. */
export interface Descriptor {
  readonly source: "ip" | "header" | "jwt" | "query";
  readonly name: string;
}

export interface CheckedLimit {
  readonly config: Config;
  /** The most tokens that it ever grants at once. */
  readonly grantable: number;
}

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
  readonly shadow: boolean;
  readonly onStoreError?: OnStoreError;
  /** In ms. */
  readonly block?: { readonly after: number; readonly for: readonly number[]; readonly within: number };
  readonly limit: CheckedLimit;
  readonly tiers?: {
    readonly by: Descriptor;
    readonly settings: readonly { readonly name: string; readonly limit: CheckedLimit }[];
  };
}

export interface Checked {
  readonly rules: readonly CheckedRule[];
  readonly fallback?: CheckedRule;
  readonly problems: readonly PolicyProblem[];
}
