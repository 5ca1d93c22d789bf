import { HOUR, MINUTE } from "../../limit/duration.ts";
import { same } from "../expectation.ts";
import type { Cases } from "../subject.ts";

const user = { kind: "token bucket", rate: 10, period: MINUTE } as const;
const world = { kind: "fixed window", rate: 100, period: HOUR, start: 0 } as const;

/** limitAll: from all or from none. */
export const SEVERAL: Cases = {
  "limitAll takes from all limits": async ({ limits }) => {
    const subject = limits({ user, world });
    const all = await subject.limitAll([
      { name: "user", key: "ann", count: 3 },
      { name: "world", count: 4.5 },
    ]);
    same([all.ok, all.retryAt, all.decisions.map((d) => d.value)], [true, undefined, [7, 95.5]], "the answer");
    same((await subject.getValue("user", { key: "ann" })).value, 7, "the first limit");
    same((await subject.getValue("world")).value, 95.5, "the second limit");
  },
  "limitAll takes from none if any limit denies, and returns the latest retryAt": async ({ limits, clock }) => {
    const subject = limits({ user, world });
    await subject.limitAll([
      { name: "user", key: "ann", count: 9 },
      { name: "world", count: 95 },
    ]);
    const at = clock.now();
    const before = [await subject.getValue("user", { key: "ann" }), await subject.getValue("world")];
    const requests = [
      { name: "user", key: "ann", count: 2 },
      { name: "world", count: 6 },
      { name: "user", key: "bob", count: 5 },
    ] as const;
    for (const order of ["012", "210", "02", "21", "102"]) {
      clock.advance(10);
      const denied = await subject.limitAll([...order].map((i) => requests[Number(i) as 0 | 1 | 2]));
      same(denied.ok, false, `limitAll of ${order}`);
      const times = denied.decisions.filter((d) => !d.ok).map((d) => d.retryAt ?? 0);
      same(denied.retryAt, Math.max(...times), `retryAt of ${order}: the latest of those that deny`);
      same(denied.retryAfter, Math.max(...times) - clock.now(), `retryAfter of ${order}`);
    }
    clock.set(at);
    same(
      [await subject.getValue("user", { key: "ann" }), await subject.getValue("world")],
      before,
      "what was there before",
    );
    same((await subject.getValue("user", { key: "bob" })).value, 10, "a key that only took part");
    const last = await subject.limitAll([requests[0], requests[1]]);
    clock.set((last.retryAt as number) - 1);
    same((await subject.limitAll([requests[0], requests[1]])).ok, false, "all, one ms before retryAt");
    clock.advance(1);
    same((await subject.limitAll([requests[0], requests[1]])).ok, true, "all, at retryAt");
  },
  "limitAll denies without a retryAt if one count exceeds its capacity": async ({ limits }) => {
    const subject = limits({ user, world });
    const never = await subject.limitAll([
      { name: "world", count: 50 },
      { name: "user", key: "ann", count: 11 },
    ]);
    same([never.ok, never.retryAt, never.decisions[1]?.reason], [false, undefined, "exceeds capacity"], "the answer");
    same((await subject.getValue("world")).value, 100, "the limit that would have granted");
  },
  "limitAll takes the sum of two requests on one limit and key": async ({ limits }) => {
    const subject = limits({ user });
    const take = (...counts: number[]) =>
      subject.limitAll(counts.map((count) => ({ name: "user" as const, key: "ann", count })));
    same((await take(6, 5)).ok, false, "6 and 5 of 10");
    same((await subject.getValue("user", { key: "ann" })).value, 10, "what is there, after that was denied");
    same((await take(6, 3)).ok, true, "6 and 3 of 10");
    same((await subject.getValue("user", { key: "ann" })).value, 1, "what is left");
    same((await take(0.5, 0.25, 0.25)).ok, true, "the rest, in three parts");
    same((await take(0.5, 0.25, 0.25)).ok, false, "the same again");
    same((await subject.getValue("user", { key: "ann" })).value, 0, "nothing");
  },
  "limitAll rejects requests on one limit and key whose sum exceeds 2^40, and no concurrent call fails": async ({
    limits,
  }) => {
    const vast = { kind: "token bucket", rate: 2 ** 40, period: HOUR } as const;
    const subject = limits({ vast, user });
    const half = { name: "vast", key: "ann", count: 2 ** 39 } as const;
    const rule = "`count` must be a finite number of tokens from 0 to 1099511627776; got 1099511627777";
    for (const all of ["limitAll", "checkAll"] as const) {
      const requests = [half, { name: "user", key: "ann", count: 1 } as const, half, { ...half, count: 1 }];
      const beside = [subject.limit("user", { key: "bob" }), subject.limit("vast", { key: "bob" })];
      const error: unknown = await subject[all](requests).catch((thrown: unknown) => thrown);
      const { message, field } = Object(error) as { message?: unknown; field?: unknown };
      same([message, field], [rule, "count"], `the error of ${all}`);
      for (const { ok } of await Promise.all(beside)) same(ok, true, "a call beside it");
    }
    same((await subject.getValue("vast", { key: "ann" })).value, 2 ** 40, "what is left after calls that were refused");
    same((await subject.getValue("user", { key: "bob" })).value, 8, "what is left after the calls beside them");
    same((await subject.limitAll([half, half])).ok, true, "a sum of exactly 2^40");
  },
  "checkAll returns what limitAll would, and takes nothing": async ({ limits }) => {
    const subject = limits({ user, world });
    const requests = [
      { name: "user", key: "ann", count: 6 },
      { name: "world", count: 60 },
    ] as const;
    const checked = await subject.checkAll(requests);
    same(await subject.checkAll(requests), checked, "checkAll, again");
    same((await subject.getValue("world")).value, 100, "what is there after checks");
    same(await subject.limitAll(requests), checked, "limitAll, against the check before it");
    same((await subject.checkAll(requests)).ok, false, "checkAll, once it was taken");
  },
};
