import { beforeEach, describe, expect, test } from "vitest";
import { ClockOffset } from "../../src/react/clock-offset.ts";
import { LOCAL, passTime, setWall, useClocks } from "./clocks.ts";

beforeEach(useClocks);

/** A request to a server whose clock is `ahead`, with these times there and back. */
function exchange(clock: ClockOffset, { ahead, there, back }: { ahead: number; there: number; back: number }): void {
  passTime(there);
  const server = Date.now() + ahead;
  passTime(back);
  clock.exchanged(server, there + back);
}

describe("the server's clock", () => {
  test("is this machine's clock before any measurement", () => {
    const clock = new ClockOffset();
    expect(clock.now()).toBe(LOCAL);
    expect(clock.error()).toBe(Number.POSITIVE_INFINITY);
  });

  test("is off by at most half the smallest round trip, whatever the others were", () => {
    const clock = new ClockOffset();
    exchange(clock, { ahead: 60_000, there: 900, back: 100 });
    expect(clock.now() - Date.now()).toBe(60_400);
    exchange(clock, { ahead: 60_000, there: 30, back: 10 });
    expect(clock.now() - Date.now()).toBe(60_010);
    exchange(clock, { ahead: 60_000, there: 10, back: 2000 });
    expect(clock.now() - Date.now()).toBe(60_010);
    expect(clock.here(clock.now())).toBe(Date.now());
  });

  test("is not ahead of a time when that comes on this machine, where the offset is no whole number of ms", () => {
    const clock = new ClockOffset();
    exchange(clock, { ahead: 60_000, there: 10, back: 1 });
    const next = clock.now() + 1;
    passTime(clock.here(next) - Date.now());
    expect(clock.now()).toBe(next);
  });

  test("a new measurement replaces an old one, since clocks drift", () => {
    const clock = new ClockOffset();
    exchange(clock, { ahead: 0, there: 5, back: 5 });
    passTime(3_600_000);
    exchange(clock, { ahead: 300, there: 100, back: 100 });
    expect(clock.now() - Date.now()).toBe(300);
    expect(clock.error()).toBe(100);
  });

  test("a response to another request is a lower bound", () => {
    const clock = new ClockOffset();
    clock.heard(LOCAL - 5000);
    expect(clock.now()).toBe(LOCAL - 5000);
    clock.heard(LOCAL - 2000);
    expect(clock.now()).toBe(LOCAL - 2000);
    clock.heard(LOCAL - 9000);
    expect(clock.now()).toBe(LOCAL - 2000);
    exchange(clock, { ahead: -3000, there: 500, back: 500 });
    expect(clock.now() - Date.now()).toBe(-3000);
  });

  test("runs on while the machine sleeps, and reports the sleep once", () => {
    const clock = new ClockOffset();
    exchange(clock, { ahead: 1000, there: 1, back: 1 });
    expect(clock.jumped()).toBe(false);
    setWall(Date.now() + 3_600_000); // performance.now did not advance
    expect(clock.now() - Date.now()).toBe(1000);
    expect(clock.jumped()).toBe(true);
    expect(clock.jumped()).toBe(false);
  });

  test("after the wall clock was set, the next measurement counts, however slow", () => {
    const clock = new ClockOffset();
    exchange(clock, { ahead: 0, there: 1, back: 1 });
    setWall(Date.now() - 7_200_000);
    expect(clock.jumped()).toBe(true);
    exchange(clock, { ahead: 7_200_000, there: 2000, back: 2000 });
    expect(clock.now() - Date.now()).toBe(7_200_000);
  });
});
