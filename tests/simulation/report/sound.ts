import { expect } from "vitest";
import type { Run } from "./report.ts";

/** No late response, no token from nowhere and, unless the store's clock is set, no grant beyond the limit. */
export function expectSound({ scenario, figures }: Run): void {
  const { late, torn, unaccounted, overAdmitted, overTogether } = figures;
  expect({ scenario, late, torn, unaccounted }).toEqual({ scenario, late: 0, torn: 0, unaccounted: 0 });
  if (scenario.faults.storeStep === 0)
    expect({ scenario, over: [overAdmitted, overTogether] }).toEqual({ scenario, over: [0, 0] });
}
