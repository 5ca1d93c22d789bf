/** Shards that are stored apart. */
import { describe, expect, test, vi } from "vitest";
import type { Op, State } from "../src/limit/decision.ts";
import { Limit } from "../src/limit/limit.ts";
import type { Deadline } from "../src/stores/contract.ts";
import { decide, type Shards, together } from "../src/stores/sharded.ts";

const SHARDS = 8;
const limit = new Limit("parts", { kind: "token bucket", rate: 24, period: 3_600_000, shards: SHARDS });
const NOW = 5000;

function apart(values: readonly number[]): Shards {
  const held: State[] = values.map((value) => ({ value, ts: NOW }));
  return {
    async step(call, shard, now = NOW) {
      const before = held[shard] as State;
      const { decision, state } = limit.evaluate(before, call, now, { start: 0, shard: true });
      held[shard] = state as State;
      return { before, decision, now };
    },
  };
}

const take = (shards: Shards, count: number) =>
  decide(shards, { op: "take", limit, key: undefined, count, reserve: false }, NOW, undefined);

describe("a last token that rounding makes slightly smaller", () => {
  // Fifths of the last token of 24: rounding leaves 0.9999999999999964.
  const last = [0, 0, 0.2, 0.2, 0, 0.2, 0.2, 0.2];

  test("can be taken once", async () => {
    const shards = apart(last);
    expect(await take(shards, 1)).toMatchObject({ ok: true, reserved: false });
    expect((await take(shards, 1e-9)).ok).toBe(false);
  });

  test("ends a remembered denial at its retryAt", async () => {
    const rest = 0.6666666666666666;
    const shards = apart([rest, rest, rest, rest, rest, 0, rest, 0]);
    let seen: readonly (State | null)[] = [];
    const denied: Shards["denied"] = (_, states) => {
      seen = states;
    };
    const { retryAt = 0 } = await take({ ...shards, denied }, 13);
    const isGranted = (now: number, tolerance?: number) =>
      together(limit, seen, { count: 13, reserve: false }, now, 0, tolerance).ok;
    expect([isGranted(retryAt - 1), isGranted(retryAt), isGranted(retryAt, 0)]).toEqual([false, true, false]);
  });

  test("does not grant a larger count", async () => {
    expect((await take(apart(last), 1 + 1e-12)).ok).toBe(false);
  });

  test("every token of a full limit is granted, and no other, in any order of shards", async () => {
    for (let run = 0; run < 200; run++) {
      const shards = apart(Array.from({ length: SHARDS }, () => 3));
      for (let i = 0; i < 24; i++) expect((await take(shards, 1)).ok, `token ${i + 1}`).toBe(true);
      expect((await take(shards, 1)).ok).toBe(false);
    }
  });
});

/** Three tokens on each shard. `hook` runs before each step that takes or gives, with its number. */
function store(hook: (op: Op, step: number, held: State[]) => void) {
  const held: State[] = Array.from({ length: SHARDS }, () => ({ value: 3, ts: NOW }));
  const steps = { take: 0, check: 0, give: 0, charge: 0, block: 0 };
  const shards: Shards = {
    async step(call, shard, now = NOW, deadline) {
      hook(call.op, ++steps[call.op], held);
      if (deadline !== undefined && performance.now() >= deadline.at) throw new Error("late");
      const before = held[shard] as State;
      const { decision, state } = limit.evaluate(before, call, now, { start: 0, shard: true });
      held[shard] = state as State;
      return { before, decision, now };
    },
  };
  const call = (op: Op, count: number, deadline?: Deadline, reserve = false) =>
    decide(shards, { op, limit, key: undefined, count, reserve }, NOW, deadline);
  const take = (count: number, deadline?: Deadline) => call("take", count, deadline);
  const sum = () => held.reduce((total, { value }) => total + value, 0);
  return { call, take, sum, held };
}

test("a charge takes an equal part from each shard", async () => {
  const { call, held } = store(() => {});
  expect(await call("charge", 12)).toMatchObject({ ok: true, value: 12 });
  expect(held.map(({ value }) => value)).toEqual(Array(SHARDS).fill(1.5));
});

test("a count beyond what all shards hold is reserved", async () => {
  const { call } = store(() => {});
  expect(await call("take", 30, undefined, true)).toMatchObject({ ok: true, reserved: true, value: -6 });
});

test("a call from which others always take what it has seen may try again in a millisecond", async () => {
  const { take } = store((op, _, held) => held.fill({ value: op === "check" ? 3 : 0, ts: NOW }));
  expect(await take(20)).toMatchObject({ ok: false, reserved: false, retryAt: NOW + 1, retryAfter: 1 });
});

test("what a shard has no room for, because another caller gave to it meanwhile, goes to the others", async () => {
  const { call, held, sum } = store((op, step, held) => {
    if (op === "give" && step === 1) held[0] = { value: 3, ts: NOW };
  });
  held[0] = { value: 0, ts: NOW };
  held[1] = { value: 1, ts: NOW };
  expect(await call("give", 2)).toMatchObject({ ok: true, value: 24 });
  expect(sum()).toBeCloseTo(24, 9);
});

test("a process that did not run past the deadline, and reads a reply before its timers run, goes on with the next step", async () => {
  let now = 1000;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  const deadline = { at: now + 100 };
  const { take } = store((op, step) => {
    if (op !== "check" || step !== 2) return;
    queueMicrotask(() => {
      now += 5000;
      // As a limiter does whose timer is late.
      setTimeout(() => (deadline.at = now + 100), 0);
    });
  });
  expect((await take(1, deadline)).ok).toBe(true);
});

describe("a call that takes parts of several shards and then gives them back", () => {
  test("gives them back after its deadline has passed", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const deadline = { at: performance.now() + 100 };
    // Another caller empties a shard before the first part is taken; the last part is taken at the deadline.
    const { take, sum } = store((op, step, held) => {
      if (op !== "take") return;
      if (step === 1) held[7] = { value: 0, ts: NOW };
      if (step === SHARDS) queueMicrotask(() => vi.advanceTimersByTime(100));
    });
    await take(24, deadline).catch(() => {});
    expect(sum()).toBe(21);
  });

  test.each([1, SHARDS])(
    "gives them back where step %i, on another shard, fails, and rejects with its error",
    async (one) => {
      const { take, sum } = store((op, step) => {
        if (op === "take" && step === one) throw new Error("the server of this shard is down");
      });
      await expect(take(24)).rejects.toThrow("the server of this shard is down");
      expect(sum()).toBe(24);
    },
  );

  test("gives all of them back where it took twice from a shard before it is denied", async () => {
    const { take, sum } = store((op, step, held) => {
      if (op !== "take") return;
      // Other callers empty one shard before its part is taken, and four more before the rest is.
      if (step === 1) held[7] = { value: 0, ts: NOW };
      if (step === SHARDS + 1) for (const shard of [3, 4, 5, 6]) held[shard] = { value: 0, ts: NOW };
    });
    // It looks at the shards again: one of 20 tokens is missing, and the five that are not full refill 15 an hour.
    expect(await take(20)).toMatchObject({ ok: false, retryAfter: 240_000 });
    expect(sum()).toBeCloseTo(3 * 3 + 4 * 2.5, 9);
  });

  test("gives no part back twice where one of them cannot be given", async () => {
    // Other callers empty two shards first: 15 of 20 tokens are taken, and less than 5 are left.
    const { take, sum } = store((op, step, held) => {
      if (op === "take" && step === 1) for (const shard of [6, 7]) held[shard] = { value: 0, ts: NOW };
      if (op === "give" && step === 1) throw new Error("the server of this shard is down");
    });
    await expect(take(20)).rejects.toThrow("the server of this shard is down");
    expect(sum()).toBeCloseTo(15.5, 9);
  });
});
