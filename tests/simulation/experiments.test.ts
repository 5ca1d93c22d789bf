/** Adaptive rates and retrying clients, at a small size. */
import { expect, test } from "vitest";
import type { Back } from "./experiments/herd.ts";
import { simulate } from "./tasks.ts";

const INSTANCES = [2, 10, 40];

test("adaptive rates use the server, follow its capacity, and converge to fair shares", async () => {
  const settings = INSTANCES.flatMap((instances, i) =>
    [
      { increase: 0.05, least: 0.4 },
      { increase: 0.01, least: 0.7 },
    ].map(({ increase, least }) => ({ seed: i + 1, instances, increase, least })),
  );
  const tasks = settings.map((setting) => ({ task: "adaptive", capacity: 400, ...setting }) as const);
  for (const [i, adapted] of (await simulate(tasks)).entries()) {
    for (const phase of adapted.phases) expect(phase.good).toBeGreaterThan(settings[i]?.least ?? 1);
    expect(adapted.jain).toBeGreaterThan(0.9);
  }
});

test("without adaptive rates an overloaded server serves few requests in time", async () => {
  const tasks = INSTANCES.map(
    (instances, i) => ({ task: "adaptive", seed: i + 1, instances, capacity: 400, increase: null }) as const,
  );
  for (const { phases } of await simulate(tasks)) {
    expect(phases[1]?.good).toBeLessThan(0.1);
    expect(phases[1]?.bad).toBeGreaterThan(0.9);
  }
});

const herd = (windows: boolean, back: Back) => {
  const limit = { windows, rate: 100, period: 1000, capacity: 100 };
  return { task: "herd", seed: 1, limit, clients: 1_000, back } as const;
};

test("jitter spreads a herd, and every client retries, none too early", async () => {
  const [together, spread] = await simulate([herd(true, "retryAt"), herd(true, { jitter: 1 })]);
  // Every remaining client retries in the ms in which the window starts.
  expect(together?.peakPerMs).toBeGreaterThanOrEqual(800);
  expect((spread?.peakPerMs ?? 1_000) * 20).toBeLessThan(together?.peakPerMs ?? 0);
  for (const one of [together, spread]) {
    expect(one?.doneAfter).toBeGreaterThanOrEqual(Math.floor(one?.atLeast ?? 0));
    expect(one?.doneAfter).toBeLessThan((one?.atLeast ?? 0) + 3);
  }
});

test("a client that reserves sends one call", async () => {
  for (const one of await simulate([herd(false, "reserve"), herd(true, "reserve")])) {
    expect([one.peakPerMs, one.callsPerToken]).toEqual([0, 1]);
    expect(one.doneAfter).toBeLessThan(one.atLeast + 2);
  }
});
