import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const soak = fileURLToPath(new URL("soak.mjs", import.meta.url));
const server = spawnSync(process.env["TIDEGATE_REDIS_SERVER"] ?? "redis-server", ["--version"]).status === 0;

test("memory stays flat while one process decides for new keys at full speed", { timeout: 600_000 }, () => {
  const only = server ? "memory,shared,file,lease" : "memory,shared,file";
  const run = spawnSync(process.execPath, [soak, "--seconds", "20", "--only", only], { encoding: "utf8" });
  expect(run.status, run.stdout + run.stderr).toBe(0);
  for (const store of only.split(",")) expect(run.stdout).toMatch(new RegExp(`^${store}: [1-9]\\d* decisions$`, "m"));
});
