/** The host is kept alive for a store's calls: in a Worker a call stops with the request that made it. */
import { expect, test, vi } from "vitest";
import { type Decision, defineLimits, RateLimitError } from "../src/index.ts";
import type { AsyncStore } from "../src/stores/contract.ts";
import { behind } from "./behind.ts";

test("the host is kept alive until the store has answered, past the caller's deadline too", async () => {
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

test("the methods of a store keep their `this`: `during` with leases, and `denied`", async () => {
  class Own {
    readonly #kept: Promise<unknown>[] = [];
    get kept(): number {
      return this.#kept.length;
    }
    during(work: Promise<unknown>): void {
      this.#kept.push(work);
    }
    denied(limit: string, decision: Decision): RateLimitError {
      return Object.assign(new RateLimitError(limit, decision), { kept: this.kept });
    }
  }
  const own = Object.assign(
    new Own(),
    behind(async () => {}, "own"),
    { lease: true },
  ) satisfies AsyncStore;
  const limits = defineLimits({ one: { kind: "token bucket", rate: 10, period: 1000 } }, { store: own, log: false });

  expect(await limits.limit("one")).toMatchObject({ ok: true });
  const { kept } = own;
  expect(kept).toBeGreaterThan(1);
  await expect(limits.limit("one", { count: 11, throws: true })).rejects.toMatchObject({ kept });
});
