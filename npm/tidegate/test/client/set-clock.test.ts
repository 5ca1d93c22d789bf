/** Calls that wait where the host's clock is set back or ahead. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { type ConfigOrLimit, createFetch, throttle } from "../../src/client/index.ts";
import { DAY, defineLimits, SECOND } from "../../src/index.ts";
import { later } from "../middleware/later.ts";

const spaced = { kind: "token bucket", rate: 10, period: SECOND, capacity: 1 } as const;
const START = 1_735_689_600_000;

describe("where the host's time is set", () => {
  let elapsed = 0;
  beforeEach(() => {
    vi.useFakeTimers({ now: START });
    elapsed = 0;
  });
  const pass = async (ms: number): Promise<void> => {
    await vi.advanceTimersByTimeAsync(ms);
    elapsed += ms;
  };
  // Of a server, whose time is not set.
  const shared = (): ConfigOrLimit => ({
    limiter: defineLimits({ calls: spaced }, { store: later(), now: () => START + elapsed }),
    name: "calls",
  });

  test.each([
    ["back by half an hour", -1800 * SECOND, () => spaced],
    ["back by two hours", -7200 * SECOND, () => spaced],
    ["back, with the limit of a server", -1800 * SECOND, shared],
    ["ahead, with the limit of a server", 1800 * SECOND, shared],
  ])("%s, calls keep their spacing", async (_, step, limit) => {
    const ran: number[] = [];
    const throttled = throttle(() => ran.push(elapsed), limit());
    const queue = () => [1, 2, 3, 4].map(() => throttled());
    const calls = queue();
    await pass(150);
    vi.setSystemTime(Date.now() + step);
    calls.push(...queue());
    for (let tenth = 0; tenth < 10; tenth++) await pass(100);
    await Promise.all(calls);
    expect(ran.length).toBe(8);
    // One more at once where the time was set ahead.
    for (const [i, at] of ran.entries()) expect(at).toBeGreaterThanOrEqual((i - 1) * 100 - 100);
  });

  test("back, with a limiter on the host's clock, the waiting calls keep their spacing until a further call: then all wait for the clock", async () => {
    const start = performance.now(); // which is not set
    const ran: number[] = [];
    const limiter = defineLimits({ calls: spaced });
    const throttled = throttle(() => ran.push(performance.now() - start), { limiter, name: "calls" });
    const calls = [1, 2, 3, 4, 5].map(() => throttled());
    await pass(200);
    vi.setSystemTime(Date.now() - 5 * SECOND);
    await pass(100);
    calls.push(throttled());
    await pass(6 * SECOND);
    await Promise.all(calls);
    expect(ran).toEqual([0, 100, 200, 300, 5400, 5500]);
  });

  test("ahead, a burst of one call more than the capacity runs first, and the others keep their spacing", async () => {
    const start = performance.now(); // which is not set
    const ran: number[] = [];
    const throttled = throttle(() => ran.push(performance.now() - start), { ...spaced, capacity: 4 });
    const calls = Array.from({ length: 14 }, () => throttled());
    await pass(250);
    vi.setSystemTime(Date.now() + 1800 * SECOND);
    await pass(SECOND);
    await Promise.all(calls);
    expect(ran).toEqual([0, 0, 0, 0, 100, 200, 300, 300, 300, 300, 300, 400, 500, 600]);
  });

  test("ahead, a server's wait is over at the next request; back, it is as long", async () => {
    const start = performance.now(); // which is not set
    for (const [step, expected] of [
      [1800 * SECOND, [0, 2 * SECOND, 2 * SECOND]],
      [-1800 * SECOND, [0, 4 * SECOND, 4 * SECOND]],
    ] as const) {
      const sent: number[] = [];
      const began = performance.now() - start;
      const send = async () => {
        sent.push(performance.now() - start - began);
        return new Response("", sent.length === 1 ? { status: 429, headers: { "Retry-After": "4" } } : {});
      };
      const fetch = createFetch({ fetch: send, jitter: 0 });
      const answers = [fetch("https://api.example.com/")];
      await pass(SECOND);
      vi.setSystemTime(Date.now() + step);
      await pass(SECOND);
      answers.push(fetch("https://api.example.com/"));
      await pass(3 * SECOND);
      expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
      expect(sent).toEqual(expected);
    }
  });

  test("calls keep their spacing where each test of a caller has fake timers of its own", async () => {
    const throttled = throttle(() => {}, spaced);
    await throttled();
    // Its `performance` begins anew, too.
    vi.advanceTimersByTime(60 * SECOND);
    await throttled();
    vi.useRealTimers();
    vi.useFakeTimers({ now: START });
    let ran = false;
    const call = throttled().then(() => {
      ran = true;
    });
    await pass(100);
    expect(ran).toBe(true);
    await call;
  });

  test("no time of the process is added to a test's clock that begins at 0, as that of node:test", async () => {
    // Mocks Date and the timers, and not `performance`.
    vi.useFakeTimers({ now: 0, toFake: ["Date", "setTimeout", "clearTimeout"] });
    let steady = 5 * SECOND;
    const now = vi.spyOn(performance, "now").mockImplementation(() => ++steady);
    const ran: number[] = [];
    const throttled = throttle(() => ran.push(Date.now()), spaced);
    const calls = [throttled(), throttled(), throttled()];
    await pass(99);
    expect(ran).toEqual([0]);
    await pass(101);
    expect(ran).toEqual([0, 100, 200]);
    await Promise.all(calls);
    now.mockRestore();
  });

  test("a call that waits for longer than the time is set back runs in time", async () => {
    const ran: number[] = [];
    const throttled = throttle(() => ran.push(elapsed), { ...spaced, rate: 1, period: 60 * SECOND });
    const calls = [throttled(), throttled()];
    await pass(SECOND);
    vi.setSystemTime(Date.now() - 30 * SECOND);
    await pass(59 * SECOND);
    expect(ran.length).toBe(2);
    await Promise.all(calls);
  });

  test("a call that waits for minutes runs when its tokens are due", async () => {
    const ran: number[] = [];
    const throttled = throttle(() => ran.push(elapsed), { ...spaced, rate: 1, period: 150 * SECOND });
    const calls = [throttled(), throttled()];
    await pass(150 * SECOND - 1);
    expect(ran.length).toBe(1);
    await pass(1);
    expect(ran.length).toBe(2);
    await Promise.all(calls);
  });

  test("a wait of a year takes fewer than a thousand timers: a caller's test may run them all", async () => {
    const timers = vi.spyOn(globalThis, "setTimeout");
    const throttled = throttle(() => {}, { ...spaced, rate: 1, period: 365 * DAY });
    const calls = [throttled(), throttled()];
    await vi.runAllTimersAsync();
    await Promise.all(calls);
    expect(timers.mock.calls.length).toBeLessThan(1000);
  });

  test("a call whose tokens fell due while the machine slept runs within a minute of its end", async () => {
    const ran: number[] = [];
    const throttled = throttle(() => ran.push(elapsed), { ...spaced, rate: 1, period: "40m" });
    const calls = [throttled(), throttled()];
    await pass(SECOND);
    expect(ran).toEqual([0]);
    // Timers do not run.
    vi.setSystemTime(Date.now() + 3600 * SECOND);
    await pass(60 * SECOND);
    expect(ran.length).toBe(2);
    await Promise.all(calls);
  });

  test("a date of the server is read by the time that was set", async () => {
    let sent = 0;
    const fetch = createFetch({
      jitter: 0,
      fetch: async () => {
        if (++sent > 1) return new Response();
        // The time was half an hour ahead.
        vi.setSystemTime(START - 1800 * SECOND);
        return new Response("", { status: 429, headers: { "Retry-After": new Date(Date.now() + 5000).toUTCString() } });
      },
    });
    const response = fetch("https://api.example.com/");
    await pass(5 * SECOND - 1);
    expect(sent).toBe(1);
    await pass(1);
    expect((await response).status).toBe(200);
  });
});
