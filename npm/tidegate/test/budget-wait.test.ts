import { describe, expect, onTestFinished, test, vi } from "vitest";
import { spend } from "../src/limiter/budget.ts";
import { statusOf } from "../src/http/index.ts";
import { type Config, DAY, defineLimits, HOUR, MINUTE, SECOND } from "../src/index.ts";
import type { Store } from "../src/stores/contract.ts";
import { fakeClock } from "../src/testing/clock.ts";
import { BOTH, budget, POLICIES } from "./budgets.ts";
import { later } from "./middleware/later.ts";

describe.each<[string, () => Store | undefined]>([
  ["in memory", () => undefined],
  ["with promises", later],
])("spend with `wait`, %s", (_, make) => {
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

  test("a reservation later than `wait` is given back, and denied until it would be due within `wait`", async () => {
    const { clock, limits, left, slept, sleep } = waiting();
    await limits.charge("perMinute", { count: 900 });
    const before = await left();
    const call = () => spend(limits, { limits: BOTH, estimate: 700, wait: 0.5 * MINUTE, sleep }, () => "ran");
    expect(await call()).toMatchObject({ ok: false, decided: { ok: false, retryAfter: 0.1 * MINUTE } });
    expect([await left(), slept]).toEqual([before, []]);
    clock.advance(0.1 * MINUTE - 1);
    expect((await call()).decided.retryAfter).toBe(1);
    clock.advance(1);
    expect([(await call()).ok, slept]).toEqual([true, [0.5 * MINUTE]]);
  });

  test.each<[string, Config]>([
    ["token bucket", POLICIES.perMinute],
    ["fixed window", { kind: "fixed window", rate: 1000, period: MINUTE, maxReserved: 2000 }],
  ])(
    "a reservation later than `wait` returns the decision of a check, for `wait` earlier, %s",
    async (_, perMinute) => {
      const clock = fakeClock();
      const store = make();
      const limits = defineLimits({ perMinute }, { now: clock.now, ...(store === undefined ? {} : { store }) });
      clock.advance(12_345);
      await limits.charge("perMinute", { key: "k", count: 700.5 });
      clock.advance(777);
      const call = { key: "k", limits: ["perMinute"], estimate: 800, wait: 10 } as const;
      const checked = await limits.checkAll([{ name: "perMinute", key: "k", count: 800 }]);
      const late = await spend(limits, call, () => "never");
      const times = { retryAt: late.decided.retryAt, retryAfter: late.decided.retryAfter };
      const decisions = checked.decisions.map((decision) => ({ ...decision, ...times }));
      expect(late).toEqual({ ok: false, decided: { ok: false, ...times, decisions } });
      // What is owed at a fractional ms may be due a ms later when it is computed from another one.
      expect([10, 9]).toContain((checked.retryAt ?? 0) - (times.retryAt ?? 0));
      expect(statusOf(late.decided)).toBe(429);
    },
  );

  test("a reservation that `maxReserved` denies is denied until it can be reserved for a time within `wait`", async () => {
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
    const { decisions } = await limits.checkAll(names.map((name) => ({ name, count: 1 })));
    expect(decided.decisions.map(({ retryAfter }) => retryAfter)).toEqual([6500 - 125, 9000 - 125]);
    expect(decided.decisions.map(({ value, resetAt }) => [value, resetAt])).toEqual(
      decisions.map(({ value, resetAt }) => [value, resetAt]),
    );
    expect(decided.retryAfter).toBe(9000 - 125);
    clock.advance(9000 - 250);
    expect((await spend(limits, call, () => "too early")).decided.retryAfter).toBe(125);
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
    expect([ages.decided.retryAt, ages.decided.decisions[0]?.reason]).toEqual([undefined, "exceeds clock"]);
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
    expect([decided.ok, decided.retryAt, decided.retryAfter]).toEqual([false, 522, 522]);
    for (const at of [521, 1000, 1521]) {
      clock.set(at);
      expect((await spend(limits, call, () => "too early")).decided.retryAt).toBe(at < 1000 ? 522 : 1522);
    }
    clock.set(1522);
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

  test("a turn that is over before another limit has its own is none", async () => {
    const clock = fakeClock(0);
    const limits = defineLimits(
      {
        window: { kind: "fixed window", rate: 18, period: 1000, capacity: 12, start: "first request" },
        bucket: { kind: "token bucket", rate: 18, period: 1000 },
      },
      { now: clock.now },
    );
    limits.limit("window", { count: 5 });
    limits.charge("bucket", { count: 36 });
    clock.set(600);
    const call = { limits: ["window", "bucket"], estimate: 17, wait: 478 } as const;
    const { decided } = await spend(limits, call, () => "never");
    expect(decided.decisions.map(({ ok, reason }) => [ok, reason])).toEqual([
      [false, "exceeds capacity"],
      [false, undefined],
    ]);
    expect([decided.retryAt, statusOf(decided)]).toEqual([undefined, 400]);
  });

  test("a failing store denies without a time, and its error is the decision's cause", async () => {
    const store: Store = { ...later(), decideAll: () => Promise.reject(new Error("down")) };
    const limits = defineLimits(POLICIES, { store, onStoreError: "deny", log: false });
    const { decided } = await spend(limits, { limits: BOTH, estimate: 2000, wait: HOUR }, () => "never");
    expect(decided).toMatchObject({ ok: false, degraded: true, retryAt: undefined });
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
      [{ wait: Number.NaN }, '`wait` must be a number of ms from 0 to 2147483647, or a string such as "30s"; got NaN'],
      [{ sleep: 1 }, "`sleep` must be a function that waits"],
      [{ signal: {} }, "`signal` must be an AbortSignal"],
    ] as const) {
      const options = { limits: BOTH, estimate: 1, ...wrong } as never;
      await expect(spend(limits, options, () => 0)).rejects.toThrow(message);
    }
    expect(await left()).toEqual([1000, 5000]);
  });
});

test("`retryAt` is the first millisecond at which the same call runs, also where limits have their turns at different times", async () => {
  let denied = 0;
  for (let seed = 1; seed <= 30; seed++) {
    let drawn = seed;
    const draw = () => {
      drawn = (drawn * 48_271) % 0x7fff_ffff;
      return drawn / 0x7fff_ffff;
    };
    draw();
    const of = <T>(...choices: readonly T[]): T => choices[Math.floor(draw() * choices.length)] as T;
    const limitOf = (): Config => {
      // Fractions of powers of two, which no sum rounds.
      const numbers = { rate: of(2, 4, 16), period: of(16, 32, 64), capacity: of(4, 12, 20), maxReserved: of(5, 30) };
      if (draw() < 0.3) return { kind: "token bucket", ...numbers };
      return { kind: "fixed window", ...numbers, start: of<0 | 7 | "first request">(0, 7, "first request") };
    };
    const policies = { a: limitOf(), b: limitOf(), c: limitOf() };
    const names = (["a", "b", "c"] as const).slice(0, of(1, 2, 3));
    const charged = names.map(() => of(0, 2, 9, 25));
    const call = { limits: names, estimate: of(1, 5, 17), wait: of(1, 15, 45), sleep: async () => {} };
    const clock = fakeClock(1000);
    const limits = defineLimits(policies, { now: clock.now });
    // A key for each millisecond, all in the same state.
    const keys = Array.from({ length: 1000 }, (_, index) => String(index));
    for (const key of keys) {
      for (const [index, name] of names.entries()) limits.charge(name, { key, count: charged[index] as number });
    }
    const decidedAt = async (key: string) => {
      clock.set(1003 + Number(key));
      return (await spend(limits, { ...call, key }, () => "ran")).decided;
    };
    const decided = await decidedAt("0");
    if (decided.ok) continue;
    denied++;
    const { retryAt } = decided;
    expect(statusOf(decided)).toBe(retryAt === undefined ? 400 : 429);
    let found: number | undefined;
    for (const key of keys.slice(1)) {
      if (!(await decidedAt(key)).ok) continue;
      found = clock.now();
      break;
    }
    expect(retryAt, JSON.stringify({ seed, policies, names, charged, call })).toBe(found);
  }
  expect(denied).toBeGreaterThan(10);
});
