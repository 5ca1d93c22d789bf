import { describe, expect, onTestFinished, test, vi } from "vitest";
import { spend } from "../src/limiter/budget.ts";
import { statusOf } from "../src/http/index.ts";
import { type Config, DAY, defineLimits, MINUTE, SECOND } from "../src/index.ts";
import { observe } from "../src/observe/index.ts";
import type { Store } from "../src/stores/contract.ts";
import { fakeClock } from "../src/testing/clock.ts";
import { later } from "./middleware/later.ts";

const POLICIES = {
  perMinute: { kind: "token bucket", rate: 1000, period: MINUTE },
  perDay: { kind: "token bucket", rate: 5000, period: DAY },
} as const;
const BOTH = ["perMinute", "perDay"] as const;

function budget(store?: Store) {
  const clock = fakeClock();
  const limits = defineLimits(POLICIES, { now: clock.now, ...(store === undefined ? {} : { store }) });
  const left = async () => [(await limits.getValue("perMinute")).value, (await limits.getValue("perDay")).value];
  return { clock, limits, left };
}

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

  describe("with `wait`", () => {
    function waiting() {
      const made = budget(make());
      const slept: number[] = [];
      const sleep = async (ms: number) => {
        slept.push(ms);
        made.clock.advance(ms);
      };
      return { ...made, slept, sleep };
    }

    test("runs immediately if tokens suffice, and otherwise when its reservation is due, in call order", async () => {
      const { clock, limits, left, slept, sleep } = waiting();
      const started = clock.now();
      const ran: number[] = [];
      const call = (estimate: number) =>
        spend(limits, { limits: BOTH, estimate, wait: 2 * MINUTE, sleep }, () => void ran.push(clock.now() - started));
      await call(1000);
      await call(500);
      await call(1000);
      expect(slept).toEqual([0.5 * MINUTE, MINUTE]);
      expect(ran).toEqual([0, 0.5 * MINUTE, 1.5 * MINUTE]);
      expect((await left())[0]).toBe(0);
    });

    test("a call made during a wait does not overtake it, and no token is used twice", async () => {
      const { limits, left, sleep } = waiting();
      await limits.charge("perMinute", { count: 1000 });
      const asleep = async (ms: number) => {
        const other = await spend(limits, { limits: BOTH, estimate: 10 }, () => "overtook");
        expect([other.ok, await left()]).toEqual([false, [-600, 4400]]);
        await sleep(ms);
      };
      const spent = await spend(
        limits,
        { limits: BOTH, estimate: 600, wait: MINUTE, sleep: asleep },
        async ({ used }) => {
          used(100);
          return "ran";
        },
      );
      expect(spent).toMatchObject({ ok: true, value: "ran", used: 100, decided: { retryAfter: 0.6 * MINUTE } });
      expect((await left())[0]).toBe(500);
    });

    test("a reservation later than `wait` is given back, and the decision has its time", async () => {
      const { limits, left, slept, sleep } = waiting();
      await limits.charge("perMinute", { count: 900 });
      const before = await left();
      const spent = await spend(limits, { limits: BOTH, estimate: 700, wait: 0.5 * MINUTE, sleep }, () => "never");
      expect(spent).toMatchObject({ ok: false, decided: { ok: false, retryAfter: 0.6 * MINUTE } });
      expect([await left(), slept]).toEqual([before, []]);
    });

    test.each<[string, Config]>([
      ["token bucket", POLICIES.perMinute],
      ["fixed window", { kind: "fixed window", rate: 1000, period: MINUTE, maxReserved: 2000 }],
    ])("a reservation later than `wait` returns the decision of a check, %s", async (_, perMinute) => {
      const clock = fakeClock();
      const store = make();
      const limits = defineLimits({ perMinute }, { now: clock.now, ...(store === undefined ? {} : { store }) });
      clock.advance(12_345);
      await limits.charge("perMinute", { key: "k", count: 700.5 });
      clock.advance(777);
      const call = { key: "k", limits: ["perMinute"], estimate: 800, wait: 10 } as const;
      const checked = await limits.checkAll([{ name: "perMinute", key: "k", count: 800 }]);
      const late = await spend(limits, call, () => "never");
      expect(late).toEqual({ ok: false, decided: checked });
      expect(statusOf(late.decided)).toBe(429);
    });

    test("a reservation that `maxReserved` denies is denied until the work can run, not until it can be reserved", async () => {
      const clock = fakeClock();
      const store = make();
      const bucket = { kind: "token bucket", rate: 1, period: SECOND, capacity: 5, maxReserved: 5 } as const;
      const limits = defineLimits(
        { small: bucket, large: { ...bucket, capacity: 20, maxReserved: 10 } },
        { now: clock.now, ...(store === undefined ? {} : { store }) },
      );
      const names = ["small", "large"] as const;
      await limits.charge("small", { count: 10.5 }); // it owes 5.5
      await limits.charge("large", { count: 28 }); // and this one 8
      const call = { limits: names, estimate: 1, wait: 125, sleep: (ms: number) => clock.pass(ms) } as const;
      const { decided } = await spend(limits, call, () => "too early");
      expect(decided).toEqual(await limits.checkAll(names.map((name) => ({ name, count: 1 }))));
      expect(decided.retryAfter).toBe(9000);
      clock.advance(9000 - 250);
      expect((await spend(limits, call, () => "too early")).decided.retryAfter).toBe(250);
      clock.advance(125);
      expect(await spend(limits, call, () => "ran")).toMatchObject({ ok: true, value: "ran" });
      await limits.charge("small", { count: 8 });
      const never = await spend(limits, { ...call, estimate: 7 }, () => "never");
      expect([never.decided.retryAt, statusOf(never.decided)]).toEqual([undefined, 400]);
      const more = await spend(limits, { ...call, estimate: 11, wait: MINUTE }, () => "never");
      expect([more.decided.retryAt, statusOf(more.decided)]).toEqual([undefined, 400]);
      const slow = defineLimits({ small: { ...bucket, rate: 1e-6, period: 2 ** 40 } }, { now: clock.now });
      slow.charge("small", { count: 9 + 1e-7 });
      const ages = await spend(slow, { ...call, limits: ["small"] }, () => "never");
      expect([ages.decided.retryAt, statusOf(ages.decided)]).toEqual([undefined, 400]);
    });

    test("a limit whose turn comes within `wait` denies nothing when another refuses", async () => {
      const clock = fakeClock();
      const store = make();
      const limits = defineLimits(
        {
          minute: { kind: "token bucket", rate: 1000, period: MINUTE },
          day: { kind: "fixed window", rate: 2000, period: DAY, maxReserved: 0 },
        },
        { now: clock.now, ...(store === undefined ? {} : { store }) },
      );
      await limits.charge("minute", { count: 900 });
      const call = { limits: ["minute", "day"], estimate: 2500, wait: 5 * MINUTE } as const;
      const { decided } = await spend(limits, call, () => "never");
      expect(decided.decisions.map(({ ok, reserved }) => [ok, reserved])).toEqual([
        [true, true],
        [false, false],
      ]);
      expect(decided.ok).toBe(false);
    });

    test("an estimate that even a full key grants only after more than `wait` is never granted", async () => {
      const { limits, left, slept, sleep, clock } = waiting();
      const call = { limits: BOTH, estimate: 1500, sleep } as const; // a full key owes 500 of it, for 30 s
      await limits.charge("perMinute", { count: 500 });
      const before = await left();
      const never = await spend(limits, { ...call, wait: 0.5 * MINUTE - 1 }, () => "never");
      const [decision] = never.decided.decisions;
      expect([decision?.reason, decision?.retryAt, decision?.policy.name]).toEqual([
        "exceeds capacity",
        undefined,
        "perMinute",
      ]);
      expect(never.decided).toMatchObject({ ok: false, retryAt: undefined, retryAfter: undefined });
      expect([statusOf(never.decided), await left(), slept]).toEqual([400, before, []]);
      const { decided } = await spend(limits, { ...call, wait: 0.5 * MINUTE }, () => "later");
      expect([decided.ok, statusOf(decided)]).toEqual([false, 429]);
      clock.advance(decided.retryAfter ?? 0);
      expect((await spend(limits, { ...call, wait: 0.5 * MINUTE }, () => "ran")).ok).toBe(true);
    });

    test("an estimate above the capacity of a fixed window is granted when the next window is within `wait`", async () => {
      const clock = fakeClock(0);
      const api = { kind: "fixed window", rate: 18, period: 1000, capacity: 12, maxReserved: 100, start: 0 } as const;
      const limits = defineLimits({ api }, { now: clock.now });
      const call = { limits: ["api"], estimate: 17, wait: 478, sleep: (ms: number) => clock.pass(ms) } as const;
      const { decided } = await spend(limits, call, () => "too early");
      expect([decided.ok, decided.retryAt, decided.retryAfter]).toEqual([false, 1522, 1522]);
      clock.set(1521);
      expect((await spend(limits, call, () => "too early")).decided.retryAt).toBe(2522);
      clock.set(2522);
      expect((await spend(limits, call, () => "ran")).ok).toBe(true);
      // Three windows' starts: the last two are always more than that apart.
      const never = await spend(limits, { ...call, estimate: 60 }, () => "never");
      expect([never.decided.retryAt, statusOf(never.decided)]).toEqual([undefined, 400]);
    });

    test("an estimate above the capacity of a window that begins at a request runs only before the key is full", async () => {
      const clock = fakeClock(0);
      const api = {
        kind: "fixed window",
        rate: 18,
        period: 1000,
        capacity: 12,
        maxReserved: 20,
        start: "first request",
      } as const;
      const limits = defineLimits({ api }, { now: clock.now });
      const call = { limits: ["api"], estimate: 17, wait: 478, sleep: (ms: number) => clock.pass(ms) } as const;
      const run = async (options = {}) => (await spend(limits, { ...call, ...options }, () => "ran")).decided;
      // On a full key it would be due a second later, whenever that is.
      const never = await run();
      expect([never.ok, never.retryAt, statusOf(never)]).toEqual([false, undefined, 400]);
      // A capacity of which the count cannot be subtracted and added without rounding.
      const rounded = defineLimits({ api: { ...api, capacity: 0.9644122631522537 } }, { now: clock.now });
      expect((await spend(rounded, { ...call, estimate: 3 }, () => "never")).decided.retryAt).toBeUndefined();
      await limits.limit("api", { count: 5 });
      // At 1000 the key has 17 tokens if they are reserved by then; from then on it is full.
      expect((await run()).retryAt).toBe(522);
      clock.set(521);
      expect((await run()).retryAt).toBe(522);
      clock.set(522);
      expect((await run()).ok).toBe(true);
      expect(clock.now()).toBe(1000);
      await limits.charge("api", { count: 35 });
      // It owes 27. From 3000 on 17 more are no more than 20.
      expect((await run({ wait: 2500 })).retryAt).toBe(3000);
      clock.set(3000);
      expect((await run({ wait: 2500 })).ok).toBe(true);
    });

    test("an aborted wait gives back the estimate and rejects with the signal's reason", async () => {
      const { limits, left } = waiting();
      await limits.charge("perMinute", { count: 1000 });
      const before = await left();
      const controller = new AbortController();
      const work = () => "never";
      const options = { limits: BOTH, estimate: 300, wait: MINUTE, signal: controller.signal };
      const spent = spend(limits, options, work);
      setTimeout(() => controller.abort(new Error("the client went away")), 20);
      await expect(spent).rejects.toThrow("the client went away");
      expect(await left()).toEqual(before);
      const early = new AbortController();
      const second = spend(limits, { ...options, signal: early.signal }, work);
      early.abort(new Error("aborted early"));
      await expect(second).rejects.toThrow("aborted early");
      expect(await left()).toEqual(before);
      await expect(spend(limits, options, work)).rejects.toThrow("the client went away");
      expect(await left()).toEqual(before);
    });

    test("a signal that aborts while the limits decide ends a wait of an hour before it begins", async () => {
      const { limits } = waiting();
      await limits.charge("perMinute", { count: 60_000 });
      const early = new AbortController();
      const options = { limits: BOTH, estimate: 0.5, wait: 61 * MINUTE, signal: early.signal };
      const spent = spend(limits, options, () => "never");
      early.abort(new Error("aborted early"));
      await expect(spent).rejects.toThrow("aborted early");
      // One that was aborted before rejects, too, where the limits would deny.
      await expect(spend(limits, { ...options, wait: 0 }, () => "never")).rejects.toThrow("aborted early");
    }, 5000);

    test("a wait that a machine sleeps through ends a minute after it wakes, and a clock set back does not prolong one", async () => {
      vi.useFakeTimers();
      onTestFinished(() => void vi.useRealTimers());
      const { limits } = waiting();
      await limits.charge("perMinute", { count: 30_000 });
      let ran = 0;
      const call = () => spend(limits, { limits: BOTH, estimate: 500, wait: 60 * MINUTE }, () => void ran++);
      const slept = call();
      await vi.advanceTimersByTimeAsync(MINUTE);
      // The timers of a machine that sleeps stand still.
      vi.setSystemTime(Date.now() + 60 * MINUTE);
      await vi.advanceTimersByTimeAsync(MINUTE);
      expect(ran).toBe(1);
      await slept;
      const turned = call();
      await vi.advanceTimersByTimeAsync(MINUTE);
      vi.setSystemTime(Date.now() - 60 * MINUTE);
      await vi.advanceTimersByTimeAsync(28 * MINUTE);
      expect(ran).toBe(1);
      await vi.advanceTimersByTimeAsync(MINUTE);
      expect(ran).toBe(2);
      await turned;
    });

    test("an invalid option throws before tokens are taken", async () => {
      const { limits, left } = waiting();
      for (const [wrong, message] of [
        [
          { wait: Number.NaN },
          '`wait` must be a number of ms from 0 to 2147483647, or a string such as "30s"; got NaN',
        ],
        [{ sleep: 1 }, "`sleep` must be a function that waits"],
        [{ signal: {} }, "`signal` must be an AbortSignal"],
      ] as const) {
        const options = { limits: BOTH, estimate: 1, ...wrong } as never;
        await expect(spend(limits, options, () => 0)).rejects.toThrow(message);
      }
      expect(await left()).toEqual([1000, 5000]);
    });
  });
});
