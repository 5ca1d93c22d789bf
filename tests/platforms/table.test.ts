/** The tables of npm/site/reference/platforms.md: each state is what the full run does. */
import { existsSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { expect, test } from "vitest";
import { output, root } from "../packaging/installed.ts";

const PAGE = "npm/site/reference/platforms.md";
const STATES = ["tested here", "built and inspected", "left to the release workflow"];

interface Row {
  platform: string;
  state: string;
  text: string;
  tests: string[];
}

/** The rows with a state, and the files that they link to, from the root. */
const rows: Row[] = readFileSync(join(root, PAGE), "utf8")
  .split("\n")
  .map((line) => line.split(" | ").map((cell) => cell.replaceAll(/^\| | \|$/g, "")))
  .filter((cells) => cells.some((cell) => STATES.includes(cell)))
  .map((cells) => ({
    platform: (cells[0] as string).replaceAll("`", ""),
    state: cells.find((cell) => STATES.includes(cell)) as string,
    text: cells.join(" "),
    tests: [...cells.join(" ").matchAll(/\]\((\S+\.test\.ts)\)/g)].map(([, path]) =>
      normalize(join("npm/site/reference", path as string)),
    ),
  }));

/** What a module of npm/scripts exports, as JSON. */
const exported = <Value>(module: string, code: string): Value => {
  const program = `const m = await import("./npm/scripts/${module}"); console.log(JSON.stringify(${code}))`;
  const printed = output(process.execPath, ["--input-type=module", "-e", program, "-"], { cwd: root });
  return JSON.parse(printed) as Value;
};

test("every package of the addon has a row", () => {
  const addons = rows.map(({ platform }) => platform).filter((name) => /^(linux|darwin|win32)-/.test(name));
  expect(addons.sort()).toEqual(exported<string[]>("linked.mjs", "Object.keys(m.PLATFORMS)").sort());
});

test("what is tested here, or inspected in the full run, is built by its step, and nothing else is", () => {
  const here = rows.filter(({ state, text }) => state === "tested here" || text.includes("in the full run"));
  const addons = here.map(({ platform }) => platform).filter((name) => /^(linux|darwin|win32)-/.test(name));
  // This machine's own is always built.
  const built = ["linux-x64-gnu", ...exported<string[]>("steps.mjs", "m.FULL_RUN_PLATFORMS")];
  expect(addons.sort()).toEqual(built.sort());
});

test("each row names its tests, and the full run has them", () => {
  const commands = exported<string[][]>("steps.mjs", "m.nodeSteps().concat(m.cargoSteps()).map((s) => s.command)");
  const runs = (file: string) =>
    commands.some((command) => {
      const project = command.indexOf("--project");
      if (project < 0) return false;
      const filters = command.slice(project + 2);
      return filters.length > 0
        ? filters.some((filter) => file.startsWith(filter))
        : file.startsWith(`tests/${command[project + 1]}/`);
    });
  for (const { platform, state, tests } of rows) {
    expect(
      tests.filter((file) => !existsSync(join(root, file))),
      platform,
    ).toEqual([]);
    if (state !== "tested here") continue;
    expect(tests.length, platform).toBeGreaterThan(0);
    expect(
      tests.filter((file) => !runs(file)),
      platform,
    ).toEqual([]);
  }
  expect(rows.length).toBeGreaterThan(12);
});
