/** A connection that is open on the client's side alone, as after a failover without a FIN. */
import { expect, vi } from "vitest";
import { type AsyncStore, defineLimits, type LimiterOptions } from "tidegate";
import type { LossyProxy } from "../support/proxy.ts";

const limits = { api: { kind: "token bucket", rate: 100, period: 2 ** 40 } } as const;

/** Stalls the connections of the store's client, and waits until its limiter decides by the store again. */
export async function stallUntilRecovered(
  store: AsyncStore,
  proxy: LossyProxy,
  log: LimiterOptions<AsyncStore>["log"] = false,
): Promise<void> {
  const limiter = defineLimits(limits, { store, log });
  // For calls that are not late, however slow the machine.
  const patient = defineLimits(limits, { store, timeout: 60_000, log: false });
  expect((await patient.limit("api")).ok).toBe(true);
  proxy.stall();
  expect((await limiter.limit("api")).degraded).toBe(true);
  await vi.waitUntil(async () => !(await limiter.check("api")).degraded, { timeout: 60_000, interval: 50 });
  expect(Math.round((await patient.getValue("api")).value)).toBe(99);
}
