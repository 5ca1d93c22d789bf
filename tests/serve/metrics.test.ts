/** What Prometheus reads of a count that the store keeps by itself. */
import { expect, test } from "vitest";
import { metricsOf } from "../../npm/tidegate-serve/src/metrics.ts";

test("evictions are those of the store so far, however often they are read", async () => {
  const store = { evicted: 3, stats: () => store };
  const metrics = metricsOf(store, undefined);
  const evictions = async (): Promise<number> =>
    Number(/^tidegate_evictions_total (\d+)$/m.exec(await metrics.text())?.[1]);
  expect([await evictions(), await evictions()]).toEqual([3, 3]);
  store.evicted = 5;
  expect(await evictions()).toBe(5);
});
