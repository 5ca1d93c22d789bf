import { HOUR, MINUTE } from "../../limit/duration.ts";
import type { Keyed } from "../../limiter/options.ts";
import { holds, same } from "../expectation.ts";
import { type Cases, needs, type Subject } from "../subject.ts";

const SHARDS = [2, 3, 8] as const;
const config = (shards: number) => ({ kind: "token bucket", rate: 24, period: HOUR, shards }) as const;

/**
 * How far a sum over rows may be from the tokens of one bucket. Counts move in parts where rows live apart, and each part
 * rounds.
 */
const TOLERANCE = 1e-9;

/** Throws unless the limit holds so many tokens. */
async function hasLeft(subject: Subject<"parts">, key: Keyed, expected: number, about: string): Promise<void> {
  const { value } = await subject.getValue("parts", key);
  holds(Math.abs(value - expected) < TOLERANCE, `${about}: ${expected} should be left, not ${value}`);
}

/** A limit with shards decides as one bucket, whether its rows live apart or not. */
export const SHARDED: Cases = {
  "grants any count up to the capacity, at every number of shards": async ({ limits }) => {
    for (const shards of SHARDS) {
      const subject = limits({ parts: config(shards) });
      for (const count of [24, 23.5, 13, 24 / shards, 1]) {
        const [about, key] = [`${count} of 24 in ${shards} shards`, `${shards}: ${count}`];
        same((await subject.limit("parts", { key, count })).ok, true, about);
        await hasLeft(subject, { key }, 24 - count, about);
      }
      same((await subject.limit("parts", { count: 24.5 })).reason, "exceeds capacity", "more than the capacity");
    }
  },
  "a block denies one token in every shard, and in all together": async ({ limits, clock }) => {
    for (const shards of SHARDS) {
      const subject = limits({ parts: config(shards) });
      const key = `blocked ${shards}`;
      await subject.limit("parts", { key, count: 20 });
      const { retryAt = 0 } = await subject.block("parts", { key, for: "2h" });
      const late = retryAt - clock.now() - 2 * HOUR;
      holds(late >= 0 && late <= 1, `${shards} shards: the block should end after 2 h, not ${late} ms later`);
      for (let i = 0; i < 4; i++)
        same((await subject.limit("parts", { key })).ok, false, `${shards} shards: in a block`);
      clock.set(retryAt - 1);
      same((await subject.limit("parts", { key })).ok, false, `${shards} shards: 1 ms before the end`);
      clock.set(retryAt);
      same((await subject.limit("parts", { key })).ok, true, `${shards} shards: at the end`);
    }
  },
  "grants the capacity one by one, and no more": async ({ limits }) => {
    for (const shards of SHARDS) {
      const subject = limits({ parts: config(shards) });
      const key = `${shards}`;
      for (let i = 0; i < 24; i++) {
        const { ok, cause } = await subject.limit("parts", { key });
        const why = cause === undefined ? "" : `: ${cause}`;
        holds(ok, `${shards} shards deny while ${24 - i} of 24 tokens are left${why}`);
      }
      same((await subject.limit("parts", { key })).ok, false, `the 25th of 24, in ${shards} shards`);
      const { value } = await subject.getValue("parts", { key });
      holds(Math.abs(value) < TOLERANCE, `nothing should be left in ${shards} shards, not ${value}`);
    }
  },
  "a denial's retryAt is the first ms at which the request is granted, at every number of shards": async ({
    limits,
    clock,
  }) => {
    for (const shards of SHARDS) {
      const subject = limits({ parts: config(shards) });
      for (const count of [24, 13, 5]) {
        const key = `${shards}: ${count}`;
        for (let i = 0; i < 20; i++) await subject.limit("parts", { key });
        const { ok, retryAt } = await subject.limit("parts", { key, count });
        const about = `${count} of the 4 that are left, in ${shards} shards`;
        holds(!ok && retryAt !== undefined, `${about}: should be denied with a retryAt`);
        clock.set((retryAt as number) - 1);
        same((await subject.check("parts", { key, count })).ok, false, `${about}: 1 ms before retryAt`);
        clock.set(retryAt as number);
        same((await subject.check("parts", { key, count })).ok, true, `${about}: at retryAt`);
      }
    }
  },
  "give, charge and reservations move the sum by their counts": async ({ limits }) => {
    for (const shards of SHARDS) {
      const subject = limits({ parts: { ...config(shards), maxReserved: 12 } });
      const key = `${shards}`;
      const left = (expected: number, about: string) =>
        hasLeft(subject, { key }, expected, `${about}, ${shards} shards`);
      await subject.charge("parts", { key, count: 20 });
      await left(4, "20 charged");
      await subject.give("parts", { key, count: 5.5 });
      await left(9.5, "5.5 given back");
      same((await subject.limit("parts", { key, count: 15.5, reserve: true })).reserved, true, "15.5 reserved of 9.5");
      await left(-6, "15.5 reserved");
      same((await subject.limit("parts", { key, count: 6.5, reserve: true })).ok, false, "more than may be owed");
      await left(-6, "6.5 denied");
      await subject.give("parts", { key, count: 1000 });
      await left(24, "more given back than the capacity");
    }
  },
  "limitAll takes the sum of the counts on a limit with shards, once": needs("limitAll", async ({ limits }) => {
    const subject = limits({ parts: config(4), user: { kind: "token bucket", rate: 5, period: MINUTE } });
    const left = (expected: number, about: string) => hasLeft(subject, {}, expected, about);
    const take = (counts: number[], user: number) =>
      subject.limitAll([...counts.map((count) => ({ name: "parts" as const, count })), { name: "user", count: user }]);
    same((await take([2, 1], 1)).ok, true, "2 and 1 of 24");
    await left(21, "2 and 1 taken");
    same((await take([9, 9], 1)).ok, true, "9 and 9 of 21");
    await left(3, "9 and 9 taken");
    same((await take([2, 2], 1)).ok, false, "2 and 2 of 3");
    same((await take([1], 6)).ok, false, "where the other limit denies");
    await left(3, "two denials");
  }),
};
