import { HOUR, MINUTE, SECOND } from "../../limit/duration.ts";
import { holds, same } from "../expectation.ts";
import type { Cases } from "../subject.ts";

const bucket = { kind: "token bucket", rate: 7, period: MINUTE, capacity: 10 } as const;
const window = { kind: "fixed window", rate: 5, period: HOUR, start: 0 } as const;
const both = { bucket, window };

/** Denials and checks write nothing, and `retryAt` is exact. */
export const DENIALS: Cases = {
  "a denial changes neither value nor ts, to the bit": async ({ limits, clock }) => {
    const subject = limits(both);
    for (const name of ["bucket", "window"] as const) {
      await subject.limit(name, { key: "k", count: 4.3 });
      clock.advance(777);
      const taken = await subject.limit(name, { key: "k", count: 0.7 });
      const at = clock.now();
      const before = await subject.getValue(name, { key: "k" });
      for (let i = 1; i <= 20; i++) {
        clock.advance(1);
        const denied = await subject.limit(name, { key: "k", count: 9.9 - i / 100, reserve: false });
        holds(!denied.ok, `${name}: more than there is was granted`);
      }
      clock.set(at);
      const after = await subject.getValue(name, { key: "k" });
      same(after, before, `${name}: the two numbers after 20 denials`);
      same([after.value, after.ts], [taken.value, taken.ts], `${name}: the two numbers of the last grant`);
    }
  },
  "a check writes nothing, on a present key and on an absent one": async ({ limits, clock }) => {
    const subject = limits(both);
    const at = clock.now();
    for (const key of ["fresh", "used"]) {
      clock.set(at);
      if (key === "used") await subject.limit("bucket", { key, count: 2.5 });
      const before = await subject.getValue("bucket", { key });
      clock.advance(5 * SECOND);
      const checked = await subject.check("bucket", { key, count: 3 });
      same(await subject.check("bucket", { key, count: 3 }), checked, `the same check again (${key})`);
      await subject.check("bucket", { key, count: 10.5 });
      await subject.check("bucket", { key, count: 30, reserve: true });
      await subject.limit("bucket", { key, count: 0 });
      // What was written at that time would now be ahead of the clock, and have its own `ts`.
      clock.set(at);
      same(await subject.getValue("bucket", { key }), before, `the two numbers of a ${key} key after checks`);
      clock.advance(5 * SECOND);
      same(await subject.limit("bucket", { key, count: 3 }), checked, `a call, against the check before it (${key})`);
    }
  },
  "getValue writes nothing": async ({ limits, clock }) => {
    const subject = limits(both);
    const at = clock.now();
    await subject.limit("bucket", { key: "k", count: 8.25 });
    const before = await subject.getValue("bucket", { key: "k" });
    clock.advance(1234);
    await subject.getValue("bucket", { key: "k" });
    await subject.getValue("bucket", { key: "never used" });
    clock.set(at);
    same(await subject.getValue("bucket", { key: "k" }), before, "the two numbers after getValue at a later time");
    same((await subject.getValue("bucket", { key: "never used" })).ts, at, "ts of a key that was only looked at");
  },
  "grants at retryAt, and denies one millisecond before": async ({ limits, clock }) => {
    const subject = limits({
      ...both,
      slow: { kind: "token bucket", rate: 0.3, period: HOUR, capacity: 3 },
      fast: { kind: "token bucket", rate: 1e6, period: SECOND, capacity: 10 },
      thirds: { kind: "token bucket", rate: 3, period: SECOND, capacity: 1 },
    });
    for (const name of ["bucket", "window", "slow", "fast", "thirds"] as const) {
      const capacity = (await subject.check(name)).limit;
      for (const part of [1, 0.5, 0.1]) {
        const count = capacity * part;
        let denied = await subject.limit(name, { count });
        for (let i = 0; denied.ok && i < 20; i++) denied = await subject.limit(name, { count });
        const { retryAt } = denied;
        if (denied.ok || retryAt === undefined) throw new Error(`${name}: ${count} was not denied with a retryAt`);
        same(denied.retryAfter, retryAt - clock.now(), `${name}: retryAfter`);
        clock.set(retryAt - 1);
        same((await subject.limit(name, { count })).ok, false, `${name}: ${count}, one ms before retryAt`);
        clock.set(retryAt);
        same((await subject.limit(name, { count })).ok, true, `${name}: ${count}, at retryAt`);
      }
    }
  },
  "denies a count above the capacity without a retryAt": async ({ limits }) => {
    const subject = limits({ bounded: { ...bucket, maxReserved: 5 } });
    const never = await subject.limit("bounded", { count: 10.5 });
    same([never.ok, never.retryAt, never.reason], [false, undefined, "exceeds capacity"], "a count above the capacity");
    const reserved = await subject.limit("bounded", { count: 15.5, reserve: true });
    same([reserved.ok, reserved.reason], [false, "exceeds capacity"], "a reservation above capacity and maxReserved");
    same((await subject.limit("bounded", { count: 15, reserve: true })).ok, true, "a reservation of just as much");
  },
};
