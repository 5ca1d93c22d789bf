/** The words after `npm test --` choose steps by their names. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { cargoSteps, lastSteps, nodeSteps } from "../../npm/scripts/steps.mjs";

test("a word that is in no step's name is an error before anything is built, and runs nothing", () => {
  const run = spawnSync(process.execPath, ["npm/scripts/test.mjs", "unit", "vectros"], { encoding: "utf8" });
  expect(run.stderr).toMatch(/^\ntidegate: no step has "vectros" in its name; there are rust, .*, unit, /);
  expect(run.stdout).toBe("");
  expect(run.status).toBe(1);
});

test("the words of the CI on other systems choose steps that exist", () => {
  const names = [...cargoSteps(), ...nodeSteps(), ...lastSteps()].map(({ name }) => name);
  const [, words = ""] = /npm test -- ([a-z ]+)$/m.exec(readFileSync(".github/workflows/ci.yml", "utf8")) ?? [];
  expect(words).not.toBe("");
  for (const word of words.split(" ")) expect(names.filter((name) => name.includes(word))).not.toEqual([]);
});

test("the CI runs every step, and a step that cannot run is a failure there", () => {
  const script = readFileSync(".ci/run", "utf8");
  expect(script).toMatch(/^export .*\bTIDEGATE_REQUIRE_ALL=1\b/m);
  expect(script.trimEnd().split("\n").at(-1)).toMatch(/^exec node npm\/scripts\/test\.mjs --all\b/);
});
