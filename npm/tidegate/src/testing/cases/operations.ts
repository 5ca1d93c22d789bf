import { MINUTE, SECOND } from "../../limit/duration.ts";
import { keyed } from "../../limiter/options.ts";
import { same } from "../expectation.ts";
import { type Cases, needs } from "../subject.ts";

const bucket = { kind: "token bucket", rate: 60, period: MINUTE, capacity: 10 } as const;
const window = { kind: "fixed window", rate: 10, period: MINUTE, start: 0 } as const;

/** give, charge, reserve, reset, getValue. */
export const OPERATIONS: Cases = {
  "give adds tokens, up to the capacity": async ({ limits }) => {
    const subject = limits({ bucket, window });
    for (const name of ["bucket", "window"] as const) {
      await subject.limit(name, { key: "k", count: 6 });
      same((await subject.give(name, { key: "k", count: 1.5 })).value, 5.5, `${name}: 10 less 6 and 1.5 given back`);
      same((await subject.give(name, { key: "k", count: 100 })).value, 10, `${name}: no more than the capacity`);
      same((await subject.getValue(name, { key: "k" })).value, 10, `${name}: what getValue returns then`);
      same((await subject.give(name, { key: "fresh", count: 3 })).value, 10, `${name}: given to a fresh key`);
    }
  },
  "charge is always granted, and its retryAt is when the debt is paid": async ({ limits, clock }) => {
    const subject = limits({ bucket: { ...bucket, maxReserved: 0 } });
    const charged = await subject.charge("bucket", { key: "k", count: 25 });
    same([charged.ok, charged.value], [true, -15], "25 charged of 10");
    same(charged.retryAt, clock.now() + 15 * SECOND, "when 15 tokens at one a second are paid");
    same((await subject.limit("bucket", { key: "k" })).ok, false, "a call while tokens are owed");
    clock.advance(15 * SECOND);
    same((await subject.getValue("bucket", { key: "k" })).value, 0, "the debt, when it is paid");
    clock.advance(SECOND);
    same((await subject.limit("bucket", { key: "k" })).ok, true, "one token, a second later");
  },
  "a block denies one token until it ends, and no longer": async ({ limits, clock }) => {
    const first = { ...window, start: "first request" } as const;
    const subject = limits({ bucket, window, first });
    for (const name of ["bucket", "window", "first"] as const) {
      // A grid of windows goes on, and the block with the window.
      clock.set(Math.ceil(clock.now() / MINUTE) * MINUTE);
      const end = clock.now() + 15 * MINUTE;
      await subject.limit(name, { key: "k", count: 2 });
      const blocked = await subject.block(name, { key: "k", for: "15m" });
      same([blocked.ok, blocked.retryAt], [true, end], `${name}: the end of a block`);
      same((await subject.block(name, { key: "k", for: "1m" })).retryAt, end, `${name}: a shorter block in it`);
      for (const ms of [0, 14 * MINUTE, MINUTE - 1]) {
        clock.advance(ms);
        const denied = await subject.limit(name, { key: "k" });
        same([denied.ok, denied.retryAt], [false, end], `${name}: ${end - clock.now()} ms before the end`);
      }
      clock.advance(1);
      same((await subject.limit(name, { key: "k" })).ok, true, `${name}: one token, at the end`);
      same((await subject.getValue(name, { key: "k" })).value, name === "bucket" ? 0 : 9, `${name}: what is left then`);
      same((await subject.limit(name, { key: "other", count: 10 })).ok, true, `${name}: another key`);
    }
  },
  "unblock ends a block: the key is full": needs("shards", async ({ limits }) => {
    const subject = limits({ bucket, window, parts: { ...bucket, shards: 4 } });
    for (const name of ["bucket", "window", "parts"] as const) {
      await subject.block(name, { key: "k", for: "1h" });
      same((await subject.limit(name, { key: "k" })).ok, false, `${name}: in a block`);
      await subject.unblock(name, { key: "k" });
      same((await subject.limit(name, { key: "k", count: 10 })).ok, true, `${name}: all of it, after unblock`);
    }
  }),
  "grants reservations for later, up to maxReserved": async ({ limits, clock }) => {
    const subject = limits({ bucket: { ...bucket, maxReserved: 5 } });
    const take = (count: number) => subject.limit("bucket", { key: "k", count, reserve: true });
    same((await take(10)).reserved, false, "what is there is granted now");
    const first = await take(3);
    same([first.ok, first.reserved, first.value, first.retryAfter], [true, true, -3, 3 * SECOND], "3 reserved");
    const second = await take(2);
    same([second.ok, second.reserved, second.value, second.retryAfter], [true, true, -5, 5 * SECOND], "2 more");
    const third = await take(1);
    same([third.ok, third.reserved, third.retryAfter], [false, false, SECOND], "1 more than may be owed");
    clock.advance(SECOND);
    same((await take(1)).ok, true, "the same, at its retryAt");
  },
  "a limit that was reset is full at the next call": needs("shards", async ({ limits }) => {
    const subject = limits({ bucket, window, parts: { ...bucket, shards: 4 } });
    for (const name of ["bucket", "window", "parts"] as const) {
      await subject.charge(name, { key: "k", count: 1000 });
      await subject.reset(name, { key: "k" });
      same((await subject.getValue(name, { key: "k" })).value, 10, `${name}: what is there after a reset`);
      same((await subject.limit(name, { key: "k", count: 10 })).ok, true, `${name}: all of it, after a reset`);
      await subject.reset(name, { key: "never used" });
    }
  }),
  "getValue returns value and ts at the current time": async ({ limits, clock }) => {
    const subject = limits({ bucket, window });
    const at = clock.now();
    const two = async (name: "bucket" | "window") => {
      const { value, ts } = await subject.getValue(name);
      return [value, ts - at];
    };
    same(await two("bucket"), [10, 0], "a fresh bucket");
    same(await two("window"), [10, 0], "a fresh window");
    await subject.limit("bucket", { count: 8 });
    await subject.limit("window", { count: 8 });
    clock.advance(2500);
    same(await two("bucket"), [4.5, 2500], "a bucket, 2.5 s and as many tokens after 8 were taken");
    same(await two("window"), [2, 0], "a window that goes on");
    clock.advance(MINUTE);
    same(await two("window"), [10, MINUTE], "the window after it");
  },
  "keeps every bit of a value": async ({ limits }) => {
    const one = { ...bucket, capacity: 1 };
    const subject = limits({ one, vast: { ...bucket, capacity: 2 ** 40 } });
    // With 17 digits, near 0, below 0, and large with a fraction.
    for (const [name, count] of [
      ["one", 0.7],
      ["one", 1 - 2 ** -53],
      ["one", 4 / 3],
      ["vast", 1 / 3],
    ] as const) {
      const key = String(count);
      const { limit } = await subject.charge(name, { key, count });
      same((await subject.getValue(name, { key })).value, limit - count, `${count} of ${limit}`);
    }
  },
  "resetAt is the first millisecond at which the limit is full": async ({ limits, clock }) => {
    const subject = limits({ bucket, window });
    for (const name of ["bucket", "window"] as const) {
      const { resetAt } = await subject.limit(name, { count: 7 });
      for (const at of [resetAt - 1, resetAt]) {
        clock.set(at);
        const { value } = await subject.getValue(name);
        same(
          value === 10,
          at === resetAt,
          `${name}, ${resetAt - at} ms before resetAt: whether ${value} of 10 is full`,
        );
      }
    }
  },
  "a changed config takes effect at the next call, on the tokens that are left": async ({ limits, clock }) => {
    await limits({ api: bucket }).limit("api", { key: "k", count: 7 });
    const changed = limits({ api: { ...bucket, rate: 120, capacity: 20 } });
    clock.advance(SECOND);
    const denied = await changed.limit("api", { key: "k", count: 6 });
    same([denied.ok, denied.value, denied.retryAfter], [false, 5, SECOND / 2], "6 of 3 and two more in a second");
    same((await limits({ api: { ...bucket, capacity: 2 } }).check("api", { key: "k" })).value, 1, "1 of at most 2");
  },
  "the windows of a key begin where its name and key place them": async ({ limits }) => {
    const subject = limits({ placed: { kind: "fixed window", rate: 10, period: MINUTE } });
    for (const key of [undefined, "a", "b", "c"]) {
      const { ts } = await subject.limit("placed", keyed(key));
      const { config } = await subject.getValue("placed", keyed(key));
      const start = "start" in config ? Number(config.start) : 0;
      same((ts - start) % MINUTE, 0, `${key ?? "no key"}: ms between the window and those of the key's start`);
    }
  },
  "a clock that steps back adds no tokens": async ({ limits, clock }) => {
    const subject = limits({ bucket, window });
    for (const name of ["bucket", "window"] as const) {
      let granted = 0;
      for (let i = 0; i < 200; i++) {
        clock.advance(i % 2 === 0 ? -30 * SECOND : 30 * SECOND);
        if ((await subject.limit(name)).ok) granted++;
      }
      const swings = name === "bucket" ? 30 : 10;
      same(granted <= 10 + swings, true, `${name}: at most ${10 + swings} of 200, not ${granted}`);
    }
  },
};
