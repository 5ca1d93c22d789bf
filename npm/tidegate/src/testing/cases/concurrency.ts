import { HOUR, MINUTE } from "../../limit/duration.ts";
import { holds, same } from "../expectation.ts";
import { type Cases, needs } from "../subject.ts";

const CALLS = 240;
const together = <T>(count: number, call: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => call(i)));
const granted = (answers: readonly { ok: boolean }[]): number => answers.filter(({ ok }) => ok).length;

/** Concurrent calls have the results of some sequence of them. */
export const CONCURRENCY: Cases = {
  "concurrent calls on one key are granted exactly the capacity": async ({ limits }) => {
    const subject = limits({ one: { kind: "token bucket", rate: 100, period: HOUR } });
    same(granted(await together(CALLS, () => subject.limit("one", { key: "k" }))), 100, `granted of ${CALLS} on 100`);
    same((await subject.getValue("one", { key: "k" })).value, 0, "what is left");
  },
  "concurrent calls on many keys are granted exactly the capacity of each": async ({ limits }) => {
    const subject = limits({ each: { kind: "fixed window", rate: 5, period: HOUR, start: 0 } });
    const answers = await together(CALLS, (i) => subject.limit("each", { key: `k${i % 24}` }));
    for (let k = 0; k < 24; k++) {
      const own = answers.filter((_, i) => i % 24 === k);
      same(granted(own), 5, `granted of ${own.length} on 5, key k${k}`);
    }
  },
  "concurrent calls on different keys each get their own decision": async ({ limits }) => {
    const subject = limits({ own: { kind: "token bucket", rate: 100, period: HOUR } });
    const answers = await together(CALLS, (i) => subject.limit("own", { key: `k${i}`, count: i / 4 }));
    for (const [i, { value }] of answers.entries()) same(value, 100 - i / 4, `k${i}`);
  },
  "concurrent calls of different counts take exactly what they are granted": async ({ limits }) => {
    const subject = limits({ sizes: { kind: "token bucket", rate: 1000, period: HOUR } });
    const counts = Array.from({ length: CALLS }, (_, i) => ((i * 37) % 64) / 4);
    const answers = await together(CALLS, (i) => subject.limit("sizes", { count: counts[i] }));
    const taken = answers.reduce((sum, { ok }, i) => sum + (ok ? (counts[i] as number) : 0), 0);
    same((await subject.getValue("sizes")).value, 1000 - taken, "1000 less the counts granted");
  },
  "concurrent reservations each get one token, and no token is left out": async ({ limits, clock }) => {
    const subject = limits({
      later: { kind: "token bucket", rate: 60, period: MINUTE, capacity: 0, maxReserved: 60 },
    });
    const answers = await together(90, () => subject.limit("later", { reserve: true }));
    const waits = answers.filter(({ ok }) => ok).map(({ retryAt }) => ((retryAt ?? 0) - clock.now()) / 1000);
    waits.sort((a, b) => a - b);
    const expected = Array.from({ length: 60 }, (_, i) => i + 1);
    same(waits, expected, "seconds to wait, one a second");
  },
  "concurrent takes and gives add up": async ({ limits }) => {
    const subject = limits({ both: { kind: "token bucket", rate: 1000, period: HOUR } });
    await subject.charge("both", { count: 500 });
    await together(CALLS, (i) =>
      i % 2 === 0 ? subject.limit("both", { count: 2 }) : subject.give("both", { count: 1 }),
    );
    same((await subject.getValue("both")).value, 500 - CALLS + CALLS / 2, "500, less 2 and plus 1 by turns");
  },
  "concurrent limitAll calls, in any order of limits, take from all or from none": needs(
    "limitAll",
    async ({ limits }) => {
      const subject = limits({
        a: { kind: "token bucket", rate: 50, period: HOUR },
        b: { kind: "fixed window", rate: 80, period: HOUR, start: 0 },
        c: { kind: "token bucket", rate: 60, period: HOUR },
      });
      const orders = ["ab", "ba", "bc", "cb", "ca", "ac", "abc", "cba"];
      const of = (i: number) => [...(orders[i % orders.length] as string)] as ("a" | "b" | "c")[];
      const answers = await together(CALLS, (i) => subject.limitAll(of(i).map((name) => ({ name }))));
      const left: number[] = [];
      for (const [name, capacity] of Object.entries({ a: 50, b: 80, c: 60 } as const)) {
        const { value } = await subject.getValue(name as "a" | "b" | "c");
        const taken = answers.filter(({ ok }, i) => ok && of(i).includes(name as "a" | "b" | "c")).length;
        same(value, capacity - taken, `${name}: ${capacity} less the ${taken} granted`);
        left.push(value);
      }
      holds(left.filter((value) => value === 0).length >= 2, `two of the three should be used up: ${left} are left`);
    },
  ),
  "concurrent calls on shards are granted exactly the capacity": needs("shards", async ({ limits }) => {
    const subject = limits({ parts: { kind: "token bucket", rate: 96, period: HOUR, shards: 4 } });
    same(granted(await together(CALLS, () => subject.limit("parts"))), 96, `granted of ${CALLS} on 96 in 4 shards`);
    const { value } = await subject.getValue("parts");
    holds(Math.abs(value) < 1e-9, `nothing should be left, not ${value}`);
  }),
};
