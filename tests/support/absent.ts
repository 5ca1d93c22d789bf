/** Tests that need a program which is not installed. */
import { describe, test } from "vitest";

/** Skips tests with a message, which has the command that installs what they need; with `TIDEGATE_REQUIRE_ALL=1` they fail. */
export function absent(title: string, missing: string): void {
  console.warn(`!!! NOT TESTED: ${title}: ${missing}`);
  describe.skipIf(process.env["TIDEGATE_REQUIRE_ALL"] !== "1")(title, () => {
    test(missing, () => {
      throw new Error(missing);
    });
  });
}
