/**
 * Windows' own Node.js under Wine, with an addon that MinGW's libraries link: npm run build:platforms -- win32-x64-gnu. Not part of the
 * full run. The published addon is MSVC's, and LMDB's locks under Wine are not those of Windows, so the file store is not run.
 */
import { existsSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { replay } from "../hosts/runtimes.ts";
import { addonOf, foreign } from "./foreign.ts";

interface Result {
  name: string;
  error?: string;
}

const platform = "win32-x64-gnu";

test("the package of Windows is named as its Node.js requests it", async () => {
  const { packageOf } = await import("../../npm/tidegate/src/engine/addon.ts");
  const source = { platform: "win32", arch: "x64", musl: false, require: () => undefined };
  expect(packageOf(source)).toBe("@tidegate/win32-x64-msvc");
});

if (existsSync(addonOf(platform))) {
  const node = foreign(platform, "win32-x64-msvc");
  afterAll(() => node.remove());
  const memory = (await node.run("print-memory.js")) as Result[];
  const shared = (await node.run("shared.js")) as { results: Result[]; threads: { store: string; one: number }[] };

  describe("in memory, on the wasm", () => replay(memory));
  describe("shared(), on the addon", () => replay(shared.results));

  test("four threads on one table of the addon take exactly its tokens", () => {
    expect(shared.threads.map(({ store }) => store)).toEqual(Array(4).fill("shared"));
    expect(shared.threads.reduce((sum, { one }) => sum + one, 0)).toBe(1000);
  });
}
