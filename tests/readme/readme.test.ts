import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { blocks, complaints, readme, root } from "./blocks.ts";

const run = promisify(execFile);
const found = blocks();

test("it has at most 150 lines", () => {
  expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(150);
});

describe("every block of code runs, and prints what its comments say", () => {
  test("no block is lost to the pattern", () => {
    // Shell lines are not among them.
    expect(readme.match(/^```(?!sh$|text$)\w/gm)?.length).toBe(found.length);
    expect(found.map(({ under }) => under)).toEqual(["In front of a server", "The bare limiter"]);
    expect(found.flatMap(({ prints }) => prints).length).toBe(readme.match(/\/\/ →/g)?.length);
  });

  const said = complaints(found);
  test("the compiler reports nothing else", () => expect(said.get("")).toBeUndefined());
  test.each(found)("$under: it compiles under strict settings", ({ source }) => {
    expect(said.get(source) ?? "").toBe("");
  });

  test.each(found)("$under: it runs", async ({ file, prints }) => {
    const env = { ...process.env, NO_COLOR: "1", PORT: "0" };
    const { stdout, stderr } = await run(process.execPath, [file], { cwd: dirname(file), env, timeout: 30_000 });
    expect(stderr).toBe("");
    expect(stdout.split("\n").slice(0, -1)).toEqual(prints);
  });
});

describe("its links and pictures lead to files", () => {
  const links = [...readme.matchAll(/(?:\]\(|(?:src|srcset)=")((?!https?:|#)[^)"#]+)/g)].map(([, path = ""]) => path);
  test.each([...new Set(links)])("%s", (path) => expect(existsSync(join(root, path))).toBe(true));
});
