// A user's program with fake timers: only they move the time.
import { defineLimits, MINUTE, SECOND } from "tidegate";
import { concurrent, throttle } from "tidegate/client";
import { transactional } from "tidegate/store";

/** An asynchronous store; with `stuck` it never responds. */
function later({ stuck = false } = {}) {
  const states = new Map();
  const tx = {
    get: (id) => (stuck ? new Promise(() => {}) : (states.get(id) ?? null)),
    set: (id, state) => void states.set(id, state),
    delete: (id) => void states.delete(id),
  };
  return transactional({ name: "later", transaction: (body) => body(tx) });
}

/** The same tests for every runner: `timers` is `jest` or `vi`. */
export function timing({ test, expect, timers }) {
  const send = { kind: "token bucket", rate: 1, period: MINUTE };

  test("tokens refill when the time is advanced, and not before", () => {
    const limits = defineLimits({ send });
    expect(limits.limit("send").ok).toBe(true);
    expect(limits.limit("send").retryAfter).toBe(MINUTE);
    timers.advanceTimersByTime(MINUTE - 1);
    expect(limits.limit("send").ok).toBe(false);
    timers.advanceTimersByTime(1);
    expect(limits.limit("send").ok).toBe(true);
  });

  test("a limit follows the system time that is set", () => {
    timers.setSystemTime(new Date("2030-01-01T00:00:00Z"));
    expect(defineLimits({ send }).limit("send").now).toBe(Date.UTC(2030, 0));
  });

  test("an asynchronous store responds without advancing the time", async () => {
    const limits = defineLimits({ send }, { store: later() });
    expect((await limits.limit("send")).ok).toBe(true);
    timers.advanceTimersByTime(MINUTE);
    expect((await limits.limit("send")).ok).toBe(true);
    expect(timers.getTimerCount()).toBe(0);
  });

  test("a store that never responds is answered for at the deadline", async () => {
    const limits = defineLimits({ send }, { store: later({ stuck: true }), timeout: 100 });
    const answer = limits.limit("send");
    await timers.advanceTimersByTimeAsync(100);
    expect(await answer).toMatchObject({ ok: false, degraded: true });
  });

  test("a throttled call runs when the time is advanced to its turn", async () => {
    const calls = [];
    const limited = throttle((n) => calls.push(n), { kind: "token bucket", rate: 1, period: SECOND });
    const all = Promise.all([limited(1), limited(2), limited(3)]);
    await timers.advanceTimersByTimeAsync(0);
    expect(calls).toEqual([1]);
    await timers.advanceTimersByTimeAsync(SECOND);
    expect(calls).toEqual([1, 2]);
    await timers.advanceTimersByTimeAsync(SECOND);
    await all;
    expect(calls).toEqual([1, 2, 3]);
  });

  test("calls with a concurrency of one run on promises alone", async () => {
    const limited = concurrent(async (n) => n, 1);
    expect(await Promise.all([limited(1), limited(2)])).toEqual([1, 2]);
  });
}
