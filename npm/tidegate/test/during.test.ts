/** The host is kept alive for a store's calls: in a Worker a call stops with the request that made it. */
import { expect, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import type { AsyncStore } from "../src/stores/contract.ts";
import { behind } from "./behind.ts";

test("until the store has answered, past the caller's deadline too", async () => {
  let answer = (): void => {};
  const late = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const kept: Promise<unknown>[] = [];
  const slow: AsyncStore = {
    ...behind(() => late, "slow"),
    reset: () => Promise.reject(new Error("gone")),
    during: (work) => void kept.push(work),
  };
  const bucket = { kind: "token bucket", rate: 10, period: 1000 } as const;
  const limits = defineLimits({ one: bucket }, { store: slow, timeout: 10, log: false });

  expect(await limits.limit("one")).toMatchObject({ ok: false, degraded: true });
  const ended = vi.fn();
  const first = kept[0]?.then(ended);
  await Promise.resolve();
  expect(ended).not.toHaveBeenCalled();
  answer();
  await first;
  expect(ended).toHaveBeenCalled();

  // A failure is reported to the caller, and not by the host once more.
  await expect(limits.reset("one")).rejects.toThrow("gone");
  await expect(kept[1]).resolves.toBeUndefined();
});
