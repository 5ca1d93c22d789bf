/** Denials that are remembered: what they save, and what ends them. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Limit } from "tidegate/store";
import { redis, type RestRedisLike } from "tidegate/redis";
import { heap } from "../../support/heap.ts";
import { restLike } from "./clients.ts";
import { Denials } from "../../../npm/tidegate/src/stores/redis/denials.ts";
import { callOn, client, limit, scriptCalls, store, take, replaceStore, withServer } from "./fixture.ts";

withServer();

describe("remembered denials", () => {
  test("a denied key costs no round trip until shortly before its retryAt, and is granted then", async () => {
    const quick = new Limit("quick", { kind: "token bucket", rate: 1, period: 10_000 });
    replaceStore(redis(client, { rememberDenials: 20_000 }));
    // This process's clocks advance only here; the server's runs.
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    await take("d", 1, quick);
    const denied = await take("d", 1, quick);
    expect(denied.ok).toBe(false);
    await client.config("RESETSTAT");
    const repeated = async () => {
      for (let i = 0; i < 20; i++) expect(await take("d", 1, quick)).toMatchObject({ retryAt: denied.retryAt });
      expect(await scriptCalls()).toBe(0);
    };
    await repeated();
    vi.advanceTimersByTime((denied.retryAfter as number) - 100);
    await repeated();
    vi.advanceTimersByTime(110);
    await expect
      .poll(async () => Number((await client.time())[0]) * 1000, { timeout: 60_000 })
      .toBeGreaterThan(denied.retryAt as number);
    const granted = await take("d", 1, quick);
    expect(granted.ok).toBe(true);
    expect(granted.now).toBeGreaterThanOrEqual(denied.retryAt as number);
    expect(await scriptCalls()).toBe(1);
  });

  test("a remembered denial is forgotten on reset, on give and under another policy", async () => {
    await take("f", 10);
    expect((await take("f")).ok).toBe(false);
    await store.decide(callOn("give", "f", 2), undefined);
    expect((await take("f")).ok).toBe(true);
    expect((await take("f", 5)).ok).toBe(false);
    await new Promise((resolve) => setTimeout(resolve, 5)); // in which the other policy refills a lot
    const raised = new Limit("api", { kind: "token bucket", rate: 1e9, period: 1000 });
    expect((await take("f", 5, raised)).ok).toBe(true);
    await store.decide(callOn("charge", "f", 1e9), undefined);
    expect((await take("f")).ok).toBe(false);
    await store.reset(limit, "f");
    expect((await take("f", 10)).ok).toBe(true);
  });

  test("a denial that arrives after a give, by another connection, is not remembered", async () => {
    const rest = restLike(client);
    let arrive = (): void => {};
    let isHeld = false;
    const held = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const late = redis({
      ...rest,
      evalsha: async (sha, keys, args) => {
        const isFirst = isHeld;
        isHeld = false;
        const reply = await rest.evalsha(sha, keys, args);
        if (isFirst) await held;
        return reply;
      },
    } satisfies RestRedisLike);
    const takes = async (count: number) => {
      const call = callOn("take", "late", count);
      return late.recall(call, undefined) ?? late.decide(call, undefined);
    };
    await takes(10);
    isHeld = true;
    const denied = takes(1);
    await new Promise((resolve) => setImmediate(resolve)); // the denied call is sent
    await late.decide(callOn("give", "late", 5), undefined);
    arrive();
    expect((await denied).ok).toBe(false);
    expect((await takes(1)).ok).toBe(true);
  });

  test.each(["charge", "block"] as const)("after a %s the denial is that of the server", async (op) => {
    await take(op, 10);
    const remembered = await take(op);
    await store.decide(callOn(op, op, 3_600_000), undefined);
    expect((await take(op)).retryAt).toBeGreaterThanOrEqual((remembered.retryAt as number) + 1_800_000);
  });

  test("a denial that was sent before a give is not remembered", async () => {
    await take("g", 10);
    const denied = take("g");
    await new Promise((resolve) => process.nextTick(() => process.nextTick(resolve)));
    const given = store.decide(callOn("give", "g", 5), undefined);
    expect((await denied).ok).toBe(false);
    await given;
    expect((await take("g", 5)).ok).toBe(true);
  });

  test("a denial that was sent while two gives end is not remembered", async () => {
    const denials = new Denials(60_000);
    const denied = () => ({ states: [null], passed: false, sentAt: performance.now() + 1 });
    let end = (): void => {};
    const last = denials.during("g", () => new Promise<void>((resolve) => (end = resolve)));
    await denials.during("g", async () => {});
    denials.keep("g", denied());
    end();
    await last;
    expect(denials.get("g")).toBeUndefined();
    const denial = denied();
    denials.keep("g", denial);
    expect(denials.get("g")).toBe(denial);
  });

  test("of more than 10,000 denied keys the oldest is evicted", async () => {
    // The steady clock alone: however long the calls take, no denial expires.
    vi.useFakeTimers({ toFake: ["performance"] });
    const keys = Array.from({ length: 10_001 }, (_, i) => `m${i}`);
    await Promise.all(keys.map((key) => take(key, 10)));
    await Promise.all(keys.map((key) => take(key)));
    await client.config("RESETSTAT");
    expect((await take("m1")).ok).toBe(false);
    expect((await take("m10000")).ok).toBe(false);
    expect(await scriptCalls()).toBe(0);
    expect((await take("m0")).ok).toBe(false);
    expect(await scriptCalls()).toBe(1);
  });

  describe("a remembered denial, after another process's give or reset", () => {
    // The steady clock alone: sockets run as ever.
    beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
    const slow = (shards: number) =>
      new Limit("slow", { kind: "token bucket", rate: 10, period: 24 * 3_600_000, shards });

    test.each([
      [1, undefined, 1_000],
      [4, undefined, 1_000],
      [1, 40, 40],
    ])("ends within rememberDenials (%s shards, option %s: %s ms)", async (shards, rememberDenials, expected) => {
      const of = slow(shards);
      for (const reset of [() => client.flushall(), () => redis(client).reset(of, "k")]) {
        replaceStore(redis(client, { rememberDenials }));
        expect((await take("k", 10, of)).ok).toBe(true);
        expect((await take("k", 10, of)).ok).toBe(false);
        await reset();
        vi.advanceTimersByTime(expected - 1);
        expect((await take("k", 10, of)).ok, "remembered").toBe(false);
        vi.advanceTimersByTime(1);
        expect((await take("k", 10, of)).ok, "no longer remembered").toBe(true);
        await client.flushall();
      }
    });

    test("does not make memory grow while one script call gets no reply", async () => {
      let lost = false;
      const silent = redis({
        ...restLike(client),
        // The first call of a store sends the script whole.
        eval: () => {
          lost = true;
          return new Promise(() => {});
        },
      } satisfies RestRedisLike);
      void silent.decide(callOn("take", "lost"), undefined);
      await vi.waitUntil(() => lost, { timeout: 60_000 });
      const give = async (from: number, to: number) => {
        const keys = Array.from({ length: to - from }, (_, i) => `${"x".repeat(100)}${from + i}`);
        await Promise.all(keys.map((key) => silent.decide(callOn("give", key), undefined)));
      };
      for (let i = 0; i < 20_000; i += 1_000) await give(i, i + 1_000);
      const before = heap();
      for (let i = 20_000; i < 80_000; i += 1_000) await give(i, i + 1_000);
      expect(heap() - before).toBeLessThan(4e6);
    });
  });
});
