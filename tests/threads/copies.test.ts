import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { here, packageOf } from "../../npm/tidegate/src/engine/addon.ts";
import { remove, temporaryFolder } from "../support/folders.ts";

const PROGRAM = fileURLToPath(new URL("copies.mjs", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../../npm/tidegate", import.meta.url));
const ADDON = packageOf(here());
const BUILT = dirname(createRequire(join(PACKAGE, "package.json")).resolve(ADDON));

/** Two folders with the package, as npm installs for two dependents; the addon beside them or one in each. */
function installed(root: string, addon: "one for both" | "one in each"): string[] {
  const link = (modules: string): void => {
    mkdirSync(dirname(join(modules, ADDON)), { recursive: true });
    if (addon === "one for both") symlinkSync(realpathSync(BUILT), join(modules, ADDON));
    else cpSync(realpathSync(BUILT), join(modules, ADDON), { recursive: true });
  };
  if (addon === "one for both") link(join(root, "node_modules"));
  return ["a", "b"].map((dependent) => {
    const copy = join(root, "node_modules", dependent, "node_modules", "tidegate");
    cpSync(join(PACKAGE, "dist"), join(copy, "dist"), { recursive: true });
    cpSync(join(PACKAGE, "package.json"), join(copy, "package.json"));
    if (addon === "one in each") link(join(copy, "node_modules"));
    return copy;
  });
}

test.each(["one for both", "one in each"] as const)(
  "two copies of the package in one thread grant exactly the tokens of one limit, with %s addon",
  (addon) => {
    const root = temporaryFolder("copies");
    onTestFinished(() => remove(root));
    const run = [PROGRAM, ...installed(root, addon), join(root, "state")];
    const printed = JSON.parse(execFileSync(process.execPath, run, { encoding: "utf8" })) as unknown;
    expect(printed).toEqual({ granted: { shared: { five: 5, seven: 7 }, file: { five: 5, seven: 7 } }, wrong: [] });
  },
);
