/** A test that replaces timers, functions, globals or variables of the environment restores nothing itself. */
import { afterEach, vi } from "vitest";

afterEach(() => {
  // Before the timers: a spy on a timer that is a fake one restores that.
  vi.restoreAllMocks();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
});
