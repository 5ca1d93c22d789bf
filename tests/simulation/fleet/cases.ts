/** The scenarios of the report; the tests run them at a small size. */
import type { Bucket, Faults, Mode, Network, Scenario } from "./scenario.ts";

/** For every scenario of the report. */
export const SEED = 20_240_229;

/** The four modes of the report. */
export const MODES: readonly Mode[] = [
  { name: "exact" },
  { name: "batch", turn: 1_000 },
  { name: "lease", lease: true },
  { name: "shards", shards: 8 },
];

/** A data centre: one way takes 0.25 ms at the median, 0.8 ms at the 99th percentile. */
export const NEAR: Network = { median: 250, sigma: 0.5, loss: 0 };

export const NO_FAULTS: Faults = { crashes: 0, down: 0, partitions: 0, cut: 0, skew: 0, storeStep: 0 };

/** A token bucket of so many tokens per second. */
export const bucket = (rate: number, capacity: number): Bucket => ({ windows: false, rate, period: 1000, capacity });

/** 100 requests per second at each node, by Zipf's law over keys of 100 tokens per second each. */
export function fleet(name: string, nodes: number, keys: number, lasts: number, mode: Mode): Scenario {
  return {
    name,
    seed: SEED,
    lasts,
    nodes,
    keys,
    demand: { perSecond: 100 * nodes, zipf: 1, large: 0, most: 1 },
    limit: bucket(100, 200),
    mode,
    network: NEAR,
    faults: NO_FAULTS,
  };
}

/** One key that grants 100 tokens per second for each node, and `times` as many requests. */
export const hot = (name: string, nodes: number, times: number, lasts: number, mode: Mode): Scenario =>
  oneKey(fleet(name, nodes, 1, lasts, mode), 100 * nodes, times);

/** One key that grants `rate` tokens per second for any number of nodes, and `times` as many requests. */
export const scarce = (name: string, nodes: number, rate: number, times: number, lasts: number, mode: Mode): Scenario =>
  oneKey(fleet(name, nodes, 1, lasts, mode), rate, times);

function oneKey(from: Scenario, rate: number, times: number): Scenario {
  return {
    ...from,
    demand: { perSecond: rate * times, zipf: 0, large: 0, most: 1 },
    limit: bucket(rate, rate / 5),
  };
}

/** Node 0 has half of the requests. */
export function uneven(name: string, nodes: number, lasts: number, mode: Mode): Scenario {
  const from = scarce(name, nodes, 1_000, 4, lasts, mode);
  return { ...from, demand: { ...from.demand, large: 0.5 } };
}

/** Killed processes, partitions, lost messages, clocks that are off by a minute, a store whose clock is set back. */
export function faulty(name: string, nodes: number, keys: number, lasts: number, mode: Mode): Scenario {
  return {
    ...fleet(name, nodes, keys, lasts, mode),
    network: { median: 500, sigma: 1, loss: 0.002 },
    faults: { crashes: nodes, down: 500, partitions: nodes, cut: 1_000, skew: 60_000, storeStep: 1_000 },
    demand: { perSecond: 50 * nodes, zipf: 1, large: 0, most: 3 },
    limit: bucket(300, 100),
  };
}
