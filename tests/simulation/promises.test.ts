/** Promises about a fleet, under faults. Small runs of the report's scenarios, on the built package. */
import { describe, expect, test } from "vitest";
import { bucket, faulty, hot, MODES, NO_FAULTS, scarce, uneven } from "./fleet/cases.ts";
import type { Figures } from "./fleet/figures.ts";
import { earned, type Mode, type Scenario } from "./fleet/scenario.ts";
import type { Run } from "./report/report.ts";
import { expectSound } from "./report/sound.ts";
import { simulate } from "./tasks.ts";

const [EXACT, BATCH, LEASE, SHARDS] = MODES as readonly [Mode, Mode, Mode, Mode];

/** The results of scenarios, with the checks that hold for every run. */
async function all(scenarios: readonly Scenario[]): Promise<Run[]> {
  const figures = await simulate(scenarios.map((scenario) => ({ task: "fleet", scenario }) as const));
  return scenarios.map((scenario, i) => {
    const one = { scenario, figures: figures[i] as Figures };
    expect(one.figures.calls).toBeGreaterThan(50);
    expectSound(one);
    return one;
  });
}

/** Each mode with each seed. */
const each = (of: (mode: Mode) => Scenario, seeds: readonly number[] = [1, 2], modes = MODES): Promise<Run[]> =>
  all(modes.flatMap((mode) => seeds.map((seed) => ({ ...of(mode), seed }))));

function small(mode: Mode): Scenario {
  const scenario = faulty("small", 10, 30, 1_500, mode);
  return { ...scenario, demand: { ...scenario.demand, perSecond: 2_000 } };
}
const correct = (scenario: Scenario): Scenario => ({ ...scenario, faults: { ...scenario.faults, storeStep: 0 } });
const windows = (scenario: Scenario): Scenario => ({
  ...scenario,
  limit: { ...scenario.limit, windows: true, period: 500 },
});

describe("with killed processes, partitions, lost messages and wrong clocks", () => {
  test.each([
    ["a token bucket", (scenario: Scenario) => scenario],
    ["a fixed window", windows],
  ])("no more than the limit is granted, and every token is accounted for: %s", async (_, as) => {
    const cases = await each((mode) => as(correct(small(mode))));
    for (const { figures } of cases) expect(figures.unanswered).toBeGreaterThan(0);
    // Some tokens were taken for processes that never got the response.
    expect(Math.max(...cases.map(({ figures }) => figures.stranded))).toBeGreaterThan(0);
  });

  test("a store whose clock is set back grants at most what that time earns", async () => {
    for (const { scenario, figures } of await each(small)) {
      const most = earned(scenario.limit, 0, scenario.faults.storeStep);
      expect(Math.max(figures.overAdmitted, figures.overTogether)).toBeLessThanOrEqual(most);
    }
  });

  test("a limitAll takes from both limits or from none", async () => {
    const cases = await each((mode) => correct(small(mode)), [1, 2, 3], [{ name: "pairs" }]);
    for (const { figures } of cases) expect(figures.granted).toBeGreaterThan(0.1);
  });

  test("skew between nodes changes no decision of the store", async () => {
    const skewed = { ...NO_FAULTS, skew: 3_600_000 };
    for (const mode of [EXACT, BATCH, SHARDS]) {
      const right = hot("small", 10, 2, 300, mode);
      const [one, other] = (await all([right, { ...right, faults: skewed }])) as [Run, Run];
      expect(other.figures.utilization).toBeCloseTo(one.figures.utilization, 2);
      expect(other.figures.granted).toBeCloseTo(one.figures.granted, 2);
    }
  });
});

describe("tokens", () => {
  test("every token that left the store is granted or given back", async () => {
    for (const { figures } of await each((mode) => hot("small", 10, 3, 700, mode), [1]))
      expect(figures.stranded).toBe(0);
  });

  test("no token is granted twice if round trips take as long as a refill", async () => {
    await each((mode) => {
      const scenario = scarce("small", 10, 100, 3, 2_000, mode);
      return {
        ...scenario,
        network: { median: 8_000, sigma: 1, loss: 0 },
        demand: { ...scenario.demand, most: 20 },
        limit: { ...scenario.limit, capacity: 40 },
      };
    });
  });

  test("large counts are granted from the available tokens", async () => {
    await each((mode) => {
      const scenario = hot("small", 5, 2, 2_000, mode);
      return { ...scenario, demand: { ...scenario.demand, most: 200, perSecond: 200 }, limit: bucket(500, 150) };
    });
  });

  test("all available tokens are granted if each call reaches the store", async () => {
    const scenarios = [EXACT, BATCH, SHARDS].flatMap((mode) =>
      [0.5, 1, 3].map((times) => hot("small", 10, times, 1_000, mode)),
    );
    for (const { figures } of await all(scenarios)) {
      expect(figures.utilization).toBeGreaterThan(0.98);
      expect(figures.utilization).toBeLessThan(1.02);
    }
  });
});

describe("leases", () => {
  test("with enough tokens at most one call in four reaches the store, and none is denied", async () => {
    const [{ figures }] = (await all([hot("small", 20, 0.5, 3_000, LEASE)])) as [Run];
    expect([figures.utilization, figures.denied]).toEqual([1, 0]);
    expect(figures.stepsPerCall).toBeLessThan(0.25);
  });

  test("of a scarce limit more than nine tenths are granted", async () => {
    const cases = await all([1.5, 4].map((times) => scarce("small", 20, 200, times, 5_000, LEASE)));
    for (const { figures } of cases) expect(figures.utilization).toBeGreaterThan(0.9);
  });

  test("on a scarce limit the round trips follow the time, not the demand", async () => {
    for (const nodes of [1, 4]) {
      const of = (times: number): Scenario => scarce("small", nodes, 20_000, times, 100, LEASE);
      const [some, twice] = (await all([of(8), of(16)])) as [Run, Run];
      expect(twice.figures.calls).toBeGreaterThan(1.9 * some.figures.calls);
      expect(twice.figures.tripsPerSecond).toBeLessThan(1.2 * some.figures.tripsPerSecond);
      // One at a time in each process; they take half a ms.
      expect(twice.figures.tripsPerSecond).toBeLessThan(2_000 * nodes);
      expect(twice.figures.utilization).toBeGreaterThan(0.99);
    }
  });

  test("on a scarce limit calls wait for a few round trips at most", async () => {
    const sizes = [
      [1, 1_000],
      [5, 1_000],
      [20, 200],
    ] as const;
    const scenarios = sizes.flatMap(([nodes, rate]) =>
      [1.1, 4].map((times) => scarce("small", nodes, rate, times, 2_000, LEASE)),
    );
    for (const { figures } of await all(scenarios)) {
      expect(figures.unanswered).toBe(0);
      // Virtual ms.
      expect(figures.waitP99).toBeLessThan(10);
    }
  });
});

describe("shares", () => {
  test("nodes with equal demand get equal shares, up to chance", async () => {
    for (const { figures } of await each((mode) => hot("small", 10, 2, 1_500, mode), [1]))
      expect(figures.jain).toBeGreaterThan(figures.jainIdeal - 0.05);
  });

  test("a small demand is not starved by a large one", async () => {
    for (const { figures } of await each((mode) => uneven("small", 20, 1_000, mode), [1]))
      expect(figures.smallShare).toBeGreaterThan(0.95 * figures.largeShare);
  });

  test("retryAt is the first ms at which the call is granted, if one node uses the limit alone", async () => {
    const alone = (mode: Mode): Scenario => {
      const scenario = scarce("small", 1, 20, 3, 10_000, mode);
      // No call is overtaken by another in the network.
      return { ...scenario, network: { median: 10, sigma: 0, loss: 0 } };
    };
    for (const { figures } of await each(alone, [1, 2], [EXACT, BATCH, SHARDS])) {
      expect(figures.denied).toBeGreaterThan(0.3);
      expect(figures.retryAt?.exact).toBeGreaterThan(0.98);
    }
  });
});
