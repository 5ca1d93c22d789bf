/** Laws of leases, on a clock and a network that the test controls. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Config, type Decision, defineLimits } from "../../src/index.ts";
import { World } from "./world.ts";

/** Tolerance for sums of doubles. Counts are integers, so an error of one token exceeds it. */
const HAIR = 1e-6;

const configs = fc.record({
  kind: fc.constantFrom("token bucket" as const, "fixed window" as const),
  rate: fc.integer({ min: 1, max: 3000 }),
  period: fc.constantFrom(100, 1000),
  capacity: fc.integer({ min: 1, max: 3000 }),
});
const leases = fc.record({
  ahead: fc.constantFrom(5, 50, 200),
  share: fc.constantFrom(0.1, 0.5, 1),
  expiry: fc.constantFrom(200, 1000),
});

describe("several nodes, for any demand, latency and crashes", () => {
  test("no more is granted than was taken from the store, nor than the limit allows", async () => {
    await fc.assert(
      fc.asyncProperty(
        configs,
        leases,
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 0, max: 12 }),
        fc.integer(),
        async (config, lease, demands, latency, seed) => {
          let random = seed | 1;
          const next = (below: number) => {
            random ^= random << 13;
            random ^= random >>> 17;
            random ^= random << 5;
            return (random >>> 0) % below;
          };
          const world = new World(config as Config, () => (latency === 0 ? 0 : next(latency)));
          const nodes = demands.map(() => world.node(lease));
          await world.pass(120, () => {
            for (const [i, demand] of demands.entries()) {
              // Sometimes a node crashes with its leased tokens, and another one starts.
              if (next(100) === 0) nodes[i] = world.node(lease);
              if (next(60) === 0) void nodes[i]?.release();
              if (next(20) === 0) world.clock.advance(next(150));
              const busy = next(10) < 8 ? next(demand + 1) : 0;
              for (let j = 0; j < busy; j++) {
                void world.limit(nodes[i] as never, { count: 1 + (next(10) === 0 ? next(20) : 0) });
              }
            }
            expect(world.granted).toBeLessThanOrEqual(world.lent + HAIR);
          });
          await world.pass(100);
          expect(world.granted).toBeLessThanOrEqual(world.lent + HAIR);
          // Windows that begin in the span: one more than the full ones that fit.
          const more = config.kind === "fixed window" ? config.rate : 0;
          const { anySpan, fromStart } = world.excess(config as Config);
          expect(fromStart).toBeLessThanOrEqual(more + HAIR);
          expect(anySpan).toBeLessThanOrEqual(more + (2 * lease.expiry * config.rate) / config.period + HAIR);
        },
      ),
      { numRuns: 30 },
    );
  }, 60_000);
});

test("one node alone decides as it would without leases, as long as the limit is not full", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        kind: fc.constantFrom("token bucket" as const, "fixed window" as const),
        rate: fc.constantFrom(1, 8, 1000, 4096),
        period: fc.constantFrom(64, 1024),
        capacity: fc.constant(2 ** 40),
        left: fc.integer({ min: 0, max: 5000 }),
        start: fc.constant(0),
      }),
      fc.array(
        fc.record({ wait: fc.constantFrom(0, 0, 0, 0, 1, 3, 40, 700), count: fc.integer({ min: 0, max: 12 }) }),
        {
          minLength: 100,
          maxLength: 400,
        },
      ),
      async ({ start, left, ...common }, steps) => {
        const config = (common.kind === "token bucket" ? common : { ...common, start }) as Config;
        const world = new World(config);
        const leased = world.node({ expiry: 3_600_000 });
        const plain = defineLimits({ hot: config }, { now: world.clock.now });
        await world.node(false).limit("hot", { count: 2 ** 40 - left });
        plain.limit("hot", { count: 2 ** 40 - left });
        for (const { wait, count } of steps) {
          world.clock.advance(wait);
          const op = count === 12 ? "check" : "limit";
          const [here, there] = [await leased[op]("hot", { count }), plain[op]("hot", { count })];
          await world.settle();
          const answer = ({ ok, value, retryAt }: Decision) => ({ ok, value, retryAt });
          expect(answer(here)).toEqual(answer(there));
        }
      },
    ),
    { numRuns: 30 },
  );
}, 60_000);
