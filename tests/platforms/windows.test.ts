/**
 * Windows' own Node.js under Wine, once `npm run build:platforms -- win32-x64-gnu` has linked the addon with MinGW's libraries. Not part of
 * the full run. Debian 12's Wine 8 lacks bcryptprimitives.dll, which Rust's standard library needs: the addon does not load there.
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

  describe("in memory, on the wasm", () => replay(memory));
}
