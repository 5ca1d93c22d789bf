import { vi } from "vitest";

/** 2025-01-01T00:00:00Z on this machine. */
export const LOCAL = 1_735_689_600_000;

/** Both clocks of a machine, and its timers; tests move them. */
export const useClocks = (): void =>
  void vi.useFakeTimers({ now: LOCAL, toFake: ["Date", "performance", "setTimeout", "clearTimeout"] });

/** Time passes for both clocks, and due timers run. */
export const passTime = (ms: number): void => void vi.advanceTimersByTime(ms);

/** Only the wall clock jumps: it was set, or the other one stopped while the machine slept. */
export const setWall = (ms: number): void => void vi.setSystemTime(ms);

/** Lets settled promises run their callbacks. */
export const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
