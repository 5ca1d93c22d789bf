import { vi } from "vitest";

/** 2025-01-01T00:00:00Z on this machine. */
export const LOCAL = 1_735_689_600_000;

/** Both clocks of a machine, and its timers: they move only when told to. */
export const useClocks = (): void =>
  void vi.useFakeTimers({ now: LOCAL, toFake: ["Date", "performance", "setTimeout", "clearTimeout"] });

/** Time passes for both, and timers that are due run. */
export const passTime = (ms: number): void => void vi.advanceTimersByTime(ms);

/** The wall clock alone jumps: it was set, or the other stood still while the machine slept. */
export const setWall = (ms: number): void => void vi.setSystemTime(ms);

/** What was promised by now has happened. */
export const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
