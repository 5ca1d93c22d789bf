/** Calls on Redis that reach the server after their deadline, on a clock that the test moves. */
import { expect, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import { redis } from "../src/stores/redis.ts";
import { stoppingClock } from "./stopping-clock.ts";

const clock = stoppingClock(1_000_000);

test.each([
  ["after the timers that were due", 1],
  ["before them", 0],
])(
  "a call that the process held back while it did not run is sent again, where the reply is read %s",
  async (_, ms) => {
    const replies: ((reply: string) => void)[] = [];
    const run = () => new Promise<string>((resolve) => void replies.push(resolve));
    const limits = defineLimits(
      { api: { kind: "token bucket", rate: 10, period: 1000 } },
      { store: redis({ eval: run, evalsha: run }), timeout: 250, log: false },
    );
    vi.spyOn(Date, "now").mockImplementation(() => clock.now);
    const decided = limits.limit("api");
    await clock.pass(0);
    await clock.pass(249);
    clock.stop(5000);
    // The limiter moves the deadline.
    await vi.advanceTimersByTimeAsync(ms);
    replies.shift()?.(`late ${clock.now}`);
    await vi.advanceTimersByTimeAsync(2);
    replies.shift()?.(`${clock.now} 1;0`);
    expect(await decided).toMatchObject({ ok: true, remaining: 9 });
  },
);
