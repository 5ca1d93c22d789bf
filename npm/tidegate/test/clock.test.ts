import { afterEach, describe, expect, test, vi } from "vitest";
import { fakeClock } from "../src/testing/index.ts";

describe("the timers of a fake clock", () => {
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  test("run in order, each at its own time, and only when the clock reaches it", () => {
    const clock = fakeClock(0);
    const ran: [string, number][] = [];
    const note = (name: string) => () => void ran.push([name, clock.now()]);
    clock.setTimeout(note("third"), 30);
    clock.setTimeout(note("first"), 10);
    clock.setTimeout(note("second"), 10);
    const forgotten = clock.setTimeout(note("never"), 20);
    clock.clearTimeout(forgotten);
    clock.clearTimeout(forgotten);
    expect(clock.timers).toBe(3);
    clock.advance(9);
    expect(ran).toEqual([]);
    clock.advance(100);
    expect(ran).toEqual([
      ["first", 10],
      ["second", 10],
      ["third", 30],
    ]);
    expect([clock.timers, clock.now()]).toEqual([0, 109]);
  });

  test("a jump runs the timers that are due at its end; a step back runs none", () => {
    const clock = fakeClock(1000);
    const ran: number[] = [];
    clock.setTimeout(() => ran.push(clock.now()), 10);
    clock.advance(-500);
    expect(ran).toEqual([]);
    clock.set(5000);
    expect(ran).toEqual([5000]);
  });

  test("timers set by a timer run too, and `pass` lets promises settle between them", async () => {
    const clock = fakeClock(0);
    const ran: number[] = [];
    const again = async (): Promise<void> => {
      ran.push(clock.now());
      await Promise.resolve();
      if (ran.length < 5) clock.setTimeout(again, 10);
    };
    clock.setTimeout(again, 10);
    await clock.pass(100);
    expect(ran).toEqual([10, 20, 30, 40, 50]);
    expect(clock.now()).toBe(100);
  });

  test("`pass` returns where a runner's fake timers were set before the module was loaded", async () => {
    vi.useFakeTimers();
    vi.resetModules();
    const { fakeClock: loadedLater } = await import("../src/testing/clock.ts");
    const clock = loadedLater(0);
    await clock.pass(10);
    expect(clock.now()).toBe(10);
  });

  test("`pass` lets promises settle where a message does not wait for them, as in workerd", async () => {
    class Channel {
      readonly port1 = { onmessage: () => {}, close: () => {} };
      readonly port2 = { postMessage: () => queueMicrotask(() => this.port1.onmessage()) };
    }
    vi.stubGlobal("MessageChannel", Channel);
    const clock = fakeClock(0);
    let ran = false;
    const waits = async () => {
      for (let i = 0; i < 100; i++) await undefined;
      clock.setTimeout(() => (ran = true), 10);
    };
    void waits();
    await clock.pass(10);
    expect(ran).toBe(true);
  });

  test("an invalid time is refused", () => {
    const clock = fakeClock(0);
    expect(() => clock.setTimeout(() => undefined, Number.NaN)).toThrow("a finite number of ms; got NaN");
  });
});
