/** The addon for macOS, as Linux built it. Nothing here can run it. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { addonOf } from "./foreign.ts";
import { readMachO } from "./mach-o.ts";

// The full run builds arm64; `npm run build:platforms` both.
const built = ["arm64", "x64"].filter((arch) => arch === "arm64" || existsSync(addonOf(`darwin-${arch}`)));

describe.each(built)("the addon for macOS on %s", (arch) => {
  const bytes = readFileSync(addonOf(`darwin-${arch}`));
  const found = readMachO(bytes);

  test("is for that architecture, for macOS 11 or newer, and needs only libraries of the system", () => {
    expect(found).toMatchObject({ arch, minimum: "11.0", id: "@rpath/tidegate.node" });
    expect(found.libraries.filter((path) => !path.startsWith("/usr/lib/lib"))).toEqual([]);
  });

  test("exports what Node.js calls first, and no path of the machine that built it", () => {
    expect(found.exports).toContain("_napi_register_module_v1");
    expect(bytes.includes(`${process.cwd()}/target`)).toBe(false);
  });

  test("is signed where macOS requires it, and a changed byte breaks the signature", () => {
    expect(found.signed).toBe(arch === "arm64");
    if (arch !== "arm64") return;
    const changed = Buffer.from(bytes);
    changed.writeUInt8((changed[40_000] as number) ^ 1, 40_000);
    expect(readMachO(changed).signed).toBe(false);
  });
});
