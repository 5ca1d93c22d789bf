/** Calls that interleave inside one object grant what there is. */
import { env } from "cloudflare:workers";
import { defineLimits, HOUR } from "tidegate";
import { durableObject, type TidegateObject } from "tidegate/durable-object";
import { describe, expect, test } from "vitest";

const configs = {
  hot: { kind: "token bucket", rate: 1, period: 1000 * HOUR, capacity: 100 },
  other: { kind: "token bucket", rate: 1, period: 1000 * HOUR, capacity: 100 },
  wide: { kind: "token bucket", rate: 1, period: 1000 * HOUR, capacity: 100, shards: 4 },
} as const;
type Reply = Awaited<ReturnType<TidegateObject["handle"]>>;
/** ms, for calls that wait for hundreds of others on a slow machine. */
const timeout = 600_000;
const times = <T>(n: number, call: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: n }, (_, i) => call(i)));
const granted = (all: readonly { ok: boolean; cause?: unknown }[]): number => {
  for (const { cause } of all) if (cause !== undefined) throw cause;
  return all.filter(({ ok }) => ok).length;
};

describe.each(["LIMITS", "LATE", "CLASSIC"] as const)("%s", (binding) => {
  const limitsOn = (object?: () => string) =>
    defineLimits(configs, { store: durableObject(env[binding], { object }), timeout });

  test.each([150, 300])("%i calls on a capacity of 100: 100 are granted", async (n) => {
    const limits = limitsOn();
    expect(granted(await times(n, () => limits.limit("hot", { key: `${n}` })))).toBe(100);
    expect((await limits.getValue("hot", { key: `${n}` })).value).toBeCloseTo(0, 3);
  });

  test("limitAll among limit: no token is taken twice, and none is lost", async () => {
    const limits = limitsOn(() => "one for all");
    const both = [{ name: "hot" }, { name: "other" }] as const;
    const [pairs, singles] = await Promise.all([
      times(120, () => limits.limitAll(both)),
      times(120, () => limits.limit("hot")),
    ]);
    expect(granted(pairs) + granted(singles)).toBe(100);
    expect((await limits.getValue("other")).value).toBeCloseTo(100 - granted(pairs), 3);
  });

  test("a reset among calls is not undone, and none of them is granted twice", async () => {
    const limits = limitsOn();
    const take = () => limits.limit("hot", { key: "reset" });
    const [before, , after] = await Promise.all([
      times(120, take),
      limits.reset("hot", { key: "reset" }),
      times(120, take),
    ]);
    const all = granted([...before, ...after]);
    const { value } = await limits.getValue("hot", { key: "reset" });
    const sinceReset = Math.round(100 - value);
    expect(sinceReset).toBeGreaterThanOrEqual(0);
    expect(all - sinceReset).toBeGreaterThanOrEqual(0);
    expect(all - sinceReset).toBeLessThanOrEqual(100);
  });

  test("a call that is refused does not hold up the calls behind it", async () => {
    const stub = env[binding].getByName("refused");
    const broken = { operation: "decide", calls: [], now: undefined } as const;
    const sound = { op: "take", name: "hot", config: configs.hot, key: undefined, count: 1, reserve: false } as const;
    const replies = await times<Reply>(
      40,
      async (i) => await stub.handle({ ...broken, calls: i % 2 === 0 ? [] : [sound] }),
    );
    expect(replies.filter((_, i) => i % 2 === 0)).toEqual(
      Array(20).fill({ failure: { what: "a call is missing", identity: "", scope: "key" } }),
    );
    expect(
      granted(replies.filter((_, i) => i % 2 === 1).map((reply) => (reply as { answer: { ok: boolean } }).answer)),
    ).toBe(20);
  });

  test("shards in objects of their own: granted and remaining tokens add up to 100", async () => {
    const limits = limitsOn();
    const all = granted(await times(150, () => limits.limit("wide")));
    expect(all).toBeLessThanOrEqual(100);
    expect(all + (await limits.getValue("wide")).value).toBeCloseTo(100, 3);
  });

  test("leases: 300 calls of one isolate are granted 100", async () => {
    const { wide: _wide, ...unsharded } = configs;
    const limits = defineLimits(unsharded, { store: durableObject(env[binding], { lease: true }), timeout });
    expect(granted(await times(300, () => limits.limit("hot", { key: "leased" })))).toBe(100);
  });
});
