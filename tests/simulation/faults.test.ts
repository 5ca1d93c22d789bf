/** Defects that only a fleet, a locked table or a changed clock shows. Each test runs several seeds. */
import { describe, expect, test } from "vitest";
import type { Broken } from "./faults/breaker.ts";
import type { Queued } from "./faults/queue.ts";
import type { Swung } from "./faults/clock.ts";
import { simulate } from "./tasks.ts";

const SEEDS = [1, 2, 3];

describe("a failure affects only its own keys", () => {
  test.each(["key", "server"] as const)("one %s that fails: calls on healthy keys reach the store", async (fails) => {
    const tasks = SEEDS.map(
      (seed) => ({ task: "breaking", seed, fails, nodes: 4, perSecond: 400, share: 0.5, seconds: 5 }) as const,
    );
    const runs: Broken[] = await simulate(tasks);
    for (const [i, { failing, failingDegraded, healthy, healthyDegraded, cause }] of runs.entries()) {
      expect(failing).toBeGreaterThan(100);
      expect(failingDegraded).toBe(failing);
      expect(healthy).toBeGreaterThan(100);
      expect({ seed: SEEDS[i], healthyDegraded, cause }).toEqual({ seed: SEEDS[i], healthyDegraded: 0, cause: null });
    }
  });
});

describe("a call whose deadline has passed", () => {
  test("takes nothing if it was not sent to PostgreSQL, whose table is locked", async () => {
    // Each has its own database, which takes seconds to start.
    const tasks = SEEDS.slice(0, 1).map((seed) => ({ task: "queueing", seed, perSecond: 1_000, locked: 600 }) as const);
    const runs: Queued[] = await simulate(tasks);
    for (const [i, { sentLate, taken, sentInTime, degraded }] of runs.entries()) {
      expect(degraded).toBeGreaterThan(100);
      expect({ seed: SEEDS[i], sentLate, beyond: Math.max(taken - sentInTime, 0) }).toEqual({
        seed: SEEDS[i],
        sentLate: 0,
        beyond: 0,
      });
    }
  });
});

describe("a clock that swings by ten minutes", () => {
  /**
   * Tokens beyond `capacity` and what is earned until the latest time shown, for each swing, as documented in
   * guide/limits.md: Redis expires a full state by its own clock, so a step back grants at most one capacity more.
   */
  const MINTED_PER_SWING = { memory: 0, redis: 10 };

  test.each(["memory", "redis"] as const)("mints no more than documented: %s", async (store) => {
    const swings = 8;
    const tasks = SEEDS.map((seed) => ({ task: "swinging", seed, store, swings, by: 600_000 }) as const);
    const runs: Swung[] = await simulate(tasks);
    for (const [i, { granted, bound }] of runs.entries()) {
      expect({ seed: SEEDS[i], over: Math.max(granted - (bound + swings * MINTED_PER_SWING[store]), 0) }).toEqual({
        seed: SEEDS[i],
        over: 0,
      });
    }
  });
});
