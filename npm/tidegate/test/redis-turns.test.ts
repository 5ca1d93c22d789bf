/** Hosts that have no function which runs at the end of a turn. */
import { expect, test, vi } from "vitest";

const refused = (): never => {
  throw new Error("A Node.js API is used, which is not supported in the Edge Runtime.");
};

test.each([
  ["as on Workers", undefined],
  ["as where next start and next dev run the edge runtime, whose functions throw", refused],
])("concurrent calls on a host without ticks are one script call: %s", async (_, absent) => {
  vi.stubGlobal("process", { nextTick: absent });
  vi.stubGlobal("setImmediate", absent);
  vi.resetModules();
  const { defineLimits } = await import("../src/index.ts");
  const { redis } = await import("../src/stores/redis.ts");
  const run = vi.fn(async (_script: string, keys: string[]) => `1000 ${keys.length};${keys.map(() => "0").join(";")}`);
  const limits = defineLimits(
    { api: { kind: "token bucket", rate: 10, period: 1000 } },
    { store: redis({ eval: run, evalsha: run }), log: false },
  );
  const decided = await Promise.all(["ann", "bob"].map((key) => limits.limit("api", { key })));
  expect(decided).toMatchObject([{ remaining: 9 }, { remaining: 9 }]);
  expect(run).toHaveBeenCalledTimes(1);
});
