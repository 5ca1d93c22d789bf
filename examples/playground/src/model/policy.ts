/** The policy that the sliders make. The package checks what is valid; the sliders' ranges only fit the screen. */
import type { Config } from "tidegate";

export interface Draft {
  kind: Config["kind"];
  rate: number;
  period: number;
  capacity: number;
  /** `undefined`: unbounded. */
  maxReserved: number | undefined;
  shards: number;
}

export const KINDS = ["token bucket", "fixed window"] as const;
export const PERIODS = [1_000, 2_000, 5_000, 10_000, 30_000, 60_000] as const;

/** The range of each slider. */
export const RANGES = {
  rate: { min: 1, max: 100 },
  capacity: { min: 0, max: 200 },
  maxReserved: { min: 0, max: 200 },
  shards: { min: 1, max: 16 },
} as const;

export const FIRST: Draft = {
  kind: "token bucket",
  rate: 10,
  period: 1_000,
  capacity: 20,
  maxReserved: 40,
  shards: 1,
};

export function configOf({ kind, rate, period, capacity, maxReserved, shards }: Draft): Config {
  return { kind, rate, period, capacity, ...(maxReserved === undefined ? {} : { maxReserved }), shards };
}

export const seconds = (ms: number): string => `${ms / 1000}\u00a0s`;

export function sentence({ kind, rate, period, capacity, shards }: Draft): string {
  const spread = shards > 1 ? ` Its tokens are spread over ${shards} shards.` : "";
  const tokens = `${rate} ${rate === 1 ? "token" : "tokens"}`;
  const how = kind === "token bucket" ? `${tokens} every ${seconds(period)}, evenly` : `${tokens} at each`;
  const when = kind === "token bucket" ? "" : ` start of a window of ${seconds(period)}`;
  return `${how}${when}; at most ${capacity} at once.${spread}`;
}
