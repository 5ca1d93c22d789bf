import { vi } from "vitest";

/** Resolves once the claim holds, however slow the machine is: only the test's own time limit ends it. */
export const eventually = (claim: () => unknown): Promise<unknown> =>
  vi.waitFor(claim, { timeout: 50_000, interval: 5 });
