import { HOUR, MINUTE } from "../../limit/duration.ts";
import { holds, same } from "../expectation.ts";
import type { Case } from "../subject.ts";

const SHARDS = [2, 3, 8] as const;
const config = (shards: number) => ({ kind: "token bucket", rate: 24, period: HOUR, shards }) as const;

/** A limit in several parts is one limit. */
export const SHARDED: readonly Case[] = [
  {
    name: "any count up to the capacity is granted, at every number of shards",
    asks: ["shards"],
    async run({ limits }) {
      for (const shards of SHARDS) {
        const subject = limits({ parts: config(shards) });
        for (const count of [24, 23.5, 13, 24 / shards, 1]) {
          const [about, key] = [`${count} of 24 in ${shards} shards`, `${shards}: ${count}`];
          same((await subject.limit("parts", { key, count })).ok, true, about);
          const { value } = await subject.value("parts", { key });
          holds(Math.abs(value - (24 - count)) < 1e-9, `${about}: ${24 - count} should be left, not ${value}`);
        }
        same((await subject.limit("parts", { count: 24.5 })).reason, "exceeds capacity", "more than the capacity");
      }
    },
  },
  {
    name: "the whole capacity is granted one by one, and never more",
    asks: ["shards"],
    async run({ limits }) {
      for (const shards of SHARDS) {
        const subject = limits({ parts: config(shards) });
        const key = `${shards}`;
        for (let i = 0; i < 24; i++) {
          const { ok, cause } = await subject.limit("parts", { key });
          holds(ok, `${shards} shards deny while ${24 - i} of 24 are there${cause === undefined ? "" : `: ${cause}`}`);
        }
        same((await subject.limit("parts", { key })).ok, false, `the 25th of 24, in ${shards} shards`);
        const { value } = await subject.value("parts", { key });
        holds(Math.abs(value) < 1e-9, `nothing should be left in ${shards} shards, not ${value}`);
      }
    },
  },
  {
    name: "give, charge and reservations move the sum by what they say",
    asks: ["shards"],
    async run({ limits }) {
      for (const shards of SHARDS) {
        const subject = limits({ parts: { ...config(shards), maxReserved: 12 } });
        const key = `${shards}`;
        const left = async (expected: number, about: string) => {
          const { value } = await subject.value("parts", { key });
          holds(
            Math.abs(value - expected) < 1e-9,
            `${about}, ${shards} shards: ${expected} should be there, not ${value}`,
          );
        };
        await subject.charge("parts", { key, count: 20 });
        await left(4, "20 charged");
        await subject.give("parts", { key, count: 5.5 });
        await left(9.5, "5.5 given back");
        same(
          (await subject.limit("parts", { key, count: 15.5, reserve: true })).reserved,
          true,
          "15.5 reserved of 9.5",
        );
        await left(-6, "15.5 reserved");
        same((await subject.limit("parts", { key, count: 6.5, reserve: true })).ok, false, "more than may be owed");
        await left(-6, "6.5 denied");
        await subject.give("parts", { key, count: 1000 });
        await left(24, "more given back than there can be");
      }
    },
  },
  {
    name: "limitAll on shards takes the sum of what is asked, once",
    asks: ["limitAll", "shards"],
    async run({ limits }) {
      const subject = limits({ parts: config(4), user: { kind: "token bucket", rate: 5, period: MINUTE } });
      const left = async (expected: number, about: string) => {
        const { value } = await subject.value("parts");
        holds(Math.abs(value - expected) < 1e-9, `${about}: ${expected} should be there, not ${value}`);
      };
      const ask = (counts: number[], user: number) =>
        subject.limitAll([
          ...counts.map((count) => ({ name: "parts" as const, count })),
          { name: "user", count: user },
        ]);
      same((await ask([2, 1], 1)).ok, true, "2 and 1 of 24");
      await left(21, "2 and 1 taken");
      same((await ask([9, 9], 1)).ok, true, "9 and 9 of 21");
      await left(3, "9 and 9 taken");
      same((await ask([2, 2], 1)).ok, false, "2 and 2 of 3");
      same((await ask([1], 6)).ok, false, "where the other limit denies");
      await left(3, "two denials");
    },
  },
];
