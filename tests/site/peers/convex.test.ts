import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../readme/blocks.ts";
import { rows } from "./rows.ts";

test("every difference from Convex's limiter is in its tests", () => {
  const tests = readFileSync(join(root, "tests/convex/semantics.test.ts"), "utf8");
  const words = [
    "maxReserved: 0",
    "NaN",
    "negative count",
    "rate 0 and period 0",
    "steps back",
    "hour ahead",
    "start ahead of the clock",
    "two shards",
    "more than the capacity",
    "a denied reservation",
    "retryAt is a whole millisecond",
    "a count of 0",
    "`throws`",
  ];
  for (const word of words) expect(tests).toContain(word);
  // A count of NaN or below 0 is one row.
  expect(rows("convex")).toHaveLength(words.length - 1);
});
