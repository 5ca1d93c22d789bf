import { describe, expect, test, vi } from "vitest";
import { concurrent, semaphore, throttle } from "../../src/client/index.ts";
import { defineLimits, SECOND } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";

describe("concurrent", () => {
  test("shares its places with other functions, in call order", async () => {
    const clock = fakeClock();
    const two = semaphore(2);
    const ends = new Map<string, () => void>();
    const work = (name: string) => new Promise<void>((done) => ends.set(name, done));
    const [a, b] = [concurrent(work, two, { clock }), concurrent(work, two, { clock })];
    const calls = [a("a1"), b("b1"), a("a2"), b("b2")];
    const order: string[] = [];
    const held = two.acquire().then((release) => {
      order.push("held");
      return release;
    });
    await clock.pass(0);
    expect([[...ends.keys()], two.held]).toEqual([["a1", "b1"], 2]);
    for (const name of ["b1", "a1", "a2"]) {
      ends.get(name)?.();
      await clock.pass(0);
      order.push([...ends.keys()].at(-1) ?? "");
    }
    expect(order).toEqual(["a2", "b2", "held", "b2"]);
    ends.get("b2")?.();
    const release = await held;
    release();
    release();
    await Promise.all([...calls, a.idle(), b.idle()]);
    expect(two.held).toBe(0);
  });

  test("around a throttled function, only calls that have a place reserve tokens, and all keep its spacing", async () => {
    const clock = fakeClock(0);
    const limits = defineLimits(
      { a: { kind: "token bucket", rate: 1, period: SECOND, capacity: 1 } },
      { now: clock.now },
    );
    const spaced = throttle(() => clock.now(), { limiter: limits, name: "a" }, { clock });
    const run = concurrent(spaced, 2, { clock });
    const calls = Array.from({ length: 5 }, () => run());
    await clock.pass(0);
    expect(limits.getValue("a").value).toBe(-2);
    await clock.pass(5 * SECOND);
    expect(await Promise.all(calls)).toEqual([0, 1000, 2000, 3000, 4000]);
  });

  test("an abort before or while waiting for a place ends the wait", async () => {
    const one = semaphore(1);
    const release = await one.acquire();
    const gone = new AbortController();
    const waiting = one.acquire({ signal: gone.signal });
    const next = one.acquire();
    gone.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await expect(one.acquire({ signal: gone.signal })).rejects.toThrow("enough");
    release();
    (await next)();
    await expect(one.acquire({ signal: gone.signal })).rejects.toThrow("enough");
    expect(one.held).toBe(0);
  });

  test("a place that is released twice is one place", async () => {
    const two = semaphore(2);
    const release = await two.acquire();
    await two.acquire();
    release();
    release();
    expect(two.held).toBe(1);
  });

  test("takes a semaphore of another copy of the package, and no other's", async () => {
    vi.resetModules();
    const other: typeof import("../../src/client/index.ts") = await import("../../src/client/index.ts");
    expect(other.semaphore).not.toBe(semaphore);
    const one = other.semaphore(1);
    const release = await one.acquire();
    const work = vi.fn();
    const call = concurrent(work, one)();
    await new Promise(setImmediate);
    expect(work).not.toHaveBeenCalled();
    release();
    await call;
    expect([work.mock.calls.length, one.held]).toEqual([1, 0]);
    const foreign = { acquire: () => {}, release: () => {} };
    const rule = "`places` must be an integer from 1, or a semaphore of semaphore(); got an object";
    expect(() => concurrent(work, foreign as never)).toThrow(rule);
  });

  test("a release without a place taken makes no further place", () => {
    const one = semaphore(1);
    one.release();
    expect([one.held, one.tryAcquire(), one.tryAcquire(), one.held]).toEqual([0, true, false, 1]);
  });

  test("refuses an invalid number of places", () => {
    for (const places of [0, undefined as never]) {
      expect(() => concurrent(() => 1, places)).toThrow("`places` must be an integer from 1");
    }
    const places = { places: 2 } as never;
    expect(() => semaphore(places)).toThrow("`places` must be an integer from 1; got an object");
  });
});
