/**
 * Windows' own Node.js under Wine, once `npm run build:platforms -- win32-x64-gnu` has linked the addon with MinGW's libraries. Not part of
 * the full run. `file()` does not run there: LMDB maps a file before it has its size and commits its pages later, which Wine 8 refuses.
 */
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { replay, replayShared, type Result } from "../hosts/runtimes.ts";
import { addonOf, foreign } from "./foreign.ts";

const platform = "win32-x64-gnu";

test("the package of Windows is named as its Node.js requests it", async () => {
  const { packageOf } = await import("../../npm/tidegate/src/engine/addon.ts");
  const source = { platform: "win32", arch: "x64", musl: false, require: () => undefined };
  expect(packageOf(source)).toBe("@tidegate/win32-x64-msvc");
});

if (existsSync(addonOf(platform))) {
  const node = foreign(platform, "win32-x64-msvc");
  const memory = (await node.run("print-memory.js")) as Result[];
  const shared = await node.run("shared.js");

  describe("in memory, on the wasm", () => replay(memory));
  replayShared(shared);
}
