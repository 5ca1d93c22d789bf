/** What the runner of mutants relies on: one run in a copy at a time, and no test that reads other bytes than it says. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { remove, temporaryFolder } from "../support/folders.ts";

const RUN = join(import.meta.dirname, "../mutants/run.mjs");
const MUTANT = { file: "a.ts", find: "1", replace: "2", tests: [] };
let copy: string;

beforeEach(() => {
  copy = temporaryFolder("mutants");
  mkdirSync(join(copy, "target"));
  writeFileSync(join(copy, "a.ts"), "1");
  vi.stubEnv("TIDEGATE_MUTANTS", copy);
  vi.resetModules();
});

afterEach(() => {
  remove(copy);
});

test("a second run in a copy is refused before it changes a file", () => {
  writeFileSync(join(copy, "target/owner"), String(process.pid));
  const { status, stderr } = spawnSync(process.execPath, [RUN, "no such mutant"], { encoding: "utf8" });
  expect(stderr).toContain(`process ${process.pid} uses ${copy}; name another folder: TIDEGATE_MUTANTS=../copy`);
  expect(status).toBe(1);
  expect(readFileSync(join(copy, "a.ts"), "utf8")).toBe("1");
});

test("a test reads the mutant, and the file is restored after it", async () => {
  const { withMutant } = await import("../mutants/copy.mjs");
  const path = join(copy, "a.ts");
  expect(withMutant(MUTANT, () => readFileSync(path, "utf8"))).toBe("2");
  expect(readFileSync(path, "utf8")).toBe("1");
});

test("a mutant that was overwritten during its test is an error, not a result", async () => {
  const { withMutant } = await import("../mutants/copy.mjs");
  const path = join(copy, "a.ts");
  expect(() => withMutant(MUTANT, () => writeFileSync(path, "1"))).toThrow(`another process wrote ${path}`);
});

test("a mutant of the script of Redis has its digest, by which it is called: else the digest's test finds any", async () => {
  const { withMutant } = await import("../mutants/copy.mjs");
  const sha1 = (text: string) => createHash("sha1").update(text).digest("hex");
  const folder = "npm/tidegate/src/stores/redis";
  mkdirSync(join(copy, folder), { recursive: true });
  writeFileSync(join(copy, folder, "tidegate.lua"), "1");
  const caller = join(copy, folder, "script.ts");
  writeFileSync(caller, sha1("1"));
  const mutant = { ...MUTANT, file: `${folder}/tidegate.lua` };
  expect(withMutant(mutant, () => readFileSync(caller, "utf8"))).toBe(sha1("2"));
  expect(readFileSync(caller, "utf8")).toBe(sha1("1"));
});
