import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const bench = fileURLToPath(new URL("../../npm/scripts/bench.mjs", import.meta.url));

test("npm run bench refuses a suite that there is not, before it builds anything", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bench, "--suite", "wrong"], { encoding: "utf8" });
  expect([status, stdout]).toEqual([1, ""]);
  expect(stderr).toContain('--suite: no "wrong"; there are process, file,');
});
