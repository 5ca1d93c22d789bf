/** The clock of a process that may stand still. */
import { beforeEach, vi } from "vitest";

/** `performance.now` and the timers of each test go on only as the test says; `now` is `start` at first. */
export function stoppingClock(start: number) {
  const clock = {
    now: start,
    /** The process runs for so many ms. */
    async pass(ms: number): Promise<void> {
      clock.now += ms;
      await vi.advanceTimersByTimeAsync(ms);
    },
    /** It does not run for so many ms: the timers that were due then run as the test goes on. */
    stop(ms: number): void {
      clock.now += ms;
    },
  };
  beforeEach(() => {
    clock.now = start;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    vi.spyOn(performance, "now").mockImplementation(() => clock.now);
  });
  return clock;
}
