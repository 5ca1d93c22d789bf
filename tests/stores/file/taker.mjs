// Takes single tokens of two limits, one after the other, and notes each grant after it was answered:
// node taker.mjs <folder> <notes> <calls>
import { openSync, writeSync } from "node:fs";
import { defineLimits } from "tidegate";
import { file } from "tidegate/file";

const [folder, notes, calls] = process.argv.slice(2);
const bucket = { kind: "token bucket", rate: 1, period: 2 ** 40 };
const limits = defineLimits(
  { many: { ...bucket, capacity: 1_000_000 }, few: { ...bucket, capacity: 500 } },
  { store: file(folder), now: () => 1_800_000_000_000 },
);
const own = openSync(notes, "a");
const letters = { many: "m", few: "f" };
for (let i = 0; i < Number(calls); i++) {
  for (const name of ["many", "few"]) {
    const d = limits.limit(name, { key: "hot" });
    if (d.degraded === true) throw d.cause;
    // In the system's hands when it returns, whatever comes of this process.
    if (d.ok) writeSync(own, letters[name]);
  }
  const both = limits.limitAll([
    { name: "many", key: "hot" },
    { name: "many", key: `key ${i % 1000}` },
  ]);
  if (both.degraded === true) throw both.cause;
  if (both.ok) writeSync(own, "b");
}
