import { describe, expect, test } from "vitest";
import { spend } from "../src/limiter/budget.ts";
import { MINUTE } from "../src/index.ts";
import { observe } from "../src/observe/index.ts";
import type { Store } from "../src/stores/contract.ts";
import { BOTH, budget } from "./budgets.ts";
import { later } from "./middleware/later.ts";

describe.each<[string, () => Store | undefined]>([
  ["in memory", () => undefined],
  ["with promises", later],
])("spend, %s", (_, make) => {
  test("takes the estimate while the work runs, then gives back what was not used", async () => {
    const { limits, left } = budget(make());
    const spent = await spend(limits, { limits: BOTH, estimate: 800 }, async ({ used }) => {
      expect(await left()).toEqual([200, 4200]);
      used(300);
      return "answer";
    });
    expect(spent).toMatchObject({ ok: true, value: "answer", used: 300 });
    expect(await left()).toEqual([700, 4700]);
  });

  test("charges what was used beyond the estimate, into debt", async () => {
    const { limits, left } = budget(make());
    await spend(limits, { limits: BOTH, estimate: 900 }, ({ used }) => used(1500));
    expect(await left()).toEqual([-500, 3500]);
    const next = await spend(limits, { limits: BOTH, estimate: 100 }, () => "never");
    expect(next.ok).toBe(false);
    expect(next.decided.retryAfter).toBe(0.6 * MINUTE);
  });

  test("if one limit denies, none is charged and the work does not run", async () => {
    const { limits, left } = budget(make());
    await limits.charge("perDay", { count: 4900 });
    let ran = false;
    const operations: string[] = [];
    const observed = observe(limits, ({ operation }) => operations.push(operation));
    const spent = await spend(observed, { limits: BOTH, estimate: 500 }, () => {
      ran = true;
    });
    expect([spent.ok, ran, await left()]).toEqual([false, false, [1000, 100]]);
    // Without `wait` nothing is reserved, and so nothing is given back.
    expect(operations).toEqual(["limitAll", "limitAll"]);
    expect(spent.decided.decisions.map(({ ok }) => ok)).toEqual([true, false]);
  });

  test("work without `used` uses its estimate; work that fails uses what it set, or nothing", async () => {
    const { limits, left } = budget(make());
    await spend(limits, { limits: BOTH, estimate: 100 }, () => "done");
    expect(await left()).toEqual([900, 4900]);
    const failing = (tokens?: number) =>
      spend(limits, { limits: BOTH, estimate: 500 }, ({ used }) => {
        if (tokens !== undefined) used(tokens);
        throw new Error("overloaded");
      });
    await expect(failing()).rejects.toThrow("overloaded");
    expect(await left()).toEqual([900, 4900]);
    await expect(failing(40)).rejects.toThrow("overloaded");
    expect(await left()).toEqual([860, 4860]);
  });

  test("work that fails rejects with its error, where the store fails at the settlement, too", async () => {
    const { limits } = budget(make());
    const give = () => Promise.reject(new Error("the transaction has ended"));
    const failing = Object.assign(Object.create(limits), { give }) as typeof limits;
    const options = { limits: BOTH, estimate: 1 };
    await expect(spend(failing, options, () => Promise.reject(new Error("overloaded")))).rejects.toThrow("overloaded");
    await expect(spend(failing, options, ({ used }) => used(0))).rejects.toThrow("the transaction has ended");
  });

  test("an invalid argument throws before tokens are taken, at the call that has it", async () => {
    const { limits, left } = budget(make());
    for (const estimate of [Number.NaN, -1, 1e308, "1" as never]) {
      await expect(spend(limits, { limits: BOTH, estimate }, () => 0)).rejects.toThrow(
        "`estimate` must be a finite number of tokens",
      );
    }
    const user: { id?: string } = {};
    for (const key of [user.id, "", null]) {
      const options = { limits: BOTH, key: key as string, estimate: 1 };
      await expect(spend(limits, options, () => 0)).rejects.toThrow(/^`key` must be .*; got (undefined|""|null)$/);
    }
    await expect(spend(limits, { limits: [], estimate: 1 }, () => 0)).rejects.toThrow(
      "`limits` must be an array of 1 to 100 different names of limits; got 0 names",
    );
    await expect(spend(limits, { limits: ["perDay", "perMinute", "perDay"], estimate: 1 }, () => 0)).rejects.toThrow(
      '`limits` must be an array of 1 to 100 different names of limits; got "perDay" twice',
    );
    expect(await left()).toEqual([1000, 5000]);
    // `used` is missing: the call throws and gives everything back.
    await expect(spend(limits, { limits: BOTH, estimate: 10 }, ({ used }) => used(Number.NaN))).rejects.toThrow(
      "`used`",
    );
    expect(await left()).toEqual([1000, 5000]);
  });
});
