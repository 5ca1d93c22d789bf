/** A scenario: plain numbers, all in the report. Runs of equal scenarios have equal results, to the byte. */
import type { Config, LeaseOptions } from "tidegate";

export interface Scenario {
  readonly name: string;
  /** Seeds all random numbers. */
  readonly seed: number;
  /** ms during which requests arrive. */
  readonly lasts: number;
  /** Processes that share the limit. */
  readonly nodes: number;
  /** Keys, each with a limit of its own; key 0 is the most frequent. */
  readonly keys: number;
  readonly demand: Demand;
  readonly limit: Bucket;
  readonly mode: Mode;
  readonly network: Network;
  readonly faults: Faults;
}

/** Requests arrive as a Poisson process, independent of earlier decisions. */
export interface Demand {
  /** Requests per second, of all nodes together. */
  readonly perSecond: number;
  /** The exponent of Zipf's law over keys; 0 is uniform. */
  readonly zipf: number;
  /** The fraction of requests that arrive at node 0; 0: all nodes have the same. */
  readonly large: number;
  /** A request takes 1 to this many tokens. */
  readonly most: number;
}

/** The limit on each key. */
export interface Bucket {
  /** A fixed window (all tokens at the start of a period) or a token bucket. */
  readonly windows: boolean;
  /** Tokens per period. */
  readonly rate: number;
  /** ms. */
  readonly period: number;
  /** Most tokens that accumulate. */
  readonly capacity: number;
}

/** How nodes use the store, which is `redis()` in each of them. */
export type Mode =
  /** Each request is a call of its own. */
  | { readonly name: "exact" }
  /** A process is busy for this many µs at a time: the requests that arrived meanwhile are calls of one turn. */
  | { readonly name: "batch"; readonly turn: number }
  /** `lease: true`, or its settings. */
  | { readonly name: "lease"; readonly lease: true | LeaseOptions }
  /** A limit of this many shards on a Redis Cluster. */
  | { readonly name: "shards"; readonly shards: number }
  /** Each request is one `limitAll` on two limits. */
  | { readonly name: "pairs" };

/** One way takes a log-normal time, and some messages are lost. */
export interface Network {
  /** Median µs of one way. */
  readonly median: number;
  /** Standard deviation of the logarithm; 0: always the median. */
  readonly sigma: number;
  /** The fraction of messages that never arrive. */
  readonly loss: number;
}

/** Faults, at random times. */
export interface Faults {
  /** How many times a node is killed; it restarts without leases after `down` ms. */
  readonly crashes: number;
  readonly down: number;
  /** How many times a node is partitioned from the store, for `cut` ms. */
  readonly partitions: number;
  readonly cut: number;
  /** Nodes' clocks are ahead or behind by up to this many ms, run up to 0.01 % too fast or slow, and each is set once. */
  readonly skew: number;
  /** The store's clock is set back by this many ms after a third of the run, and forward again after two thirds. */
  readonly storeStep: number;
}

/** The shards of a mode. */
export const shardsOf = (mode: Mode): number => (mode.name === "shards" ? mode.shards : 1);

/** The policy of a bucket in so many shards. */
export function configOf({ windows, rate, period, capacity }: Bucket, shards: number): Config {
  const common = { rate, period, capacity, ...(shards > 1 ? { shards } : {}) };
  return windows ? { kind: "fixed window", start: 0, ...common } : { kind: "token bucket", ...common };
}

/** Tokens that a bucket gains between two instants, ms: an independent formula, which must agree with the core's. */
export function earned({ windows, rate, period }: Bucket, from: number, to: number): number {
  const periods = windows ? Math.floor(to / period) - Math.floor(from / period) : (to - from) / period;
  return rate * Math.max(periods, 0);
}
