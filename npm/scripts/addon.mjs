// The addon for this machine's Node.js, and the link under which the package finds it as an installed one does.
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./run.mjs";

export function addon() {
  run("cargo", ["run", "--quiet", "-p", "tidegate-xtask", "--", "addon", "npm"]);
  const scope = join(root, "node_modules", "@tidegate");
  mkdirSync(scope, { recursive: true });
  for (const platform of readdirSync(join(root, "npm"))) {
    const folder = join(root, "npm", platform);
    if (!existsSync(join(folder, `tidegate.${platform}.node`))) continue;
    const link = join(scope, platform);
    if (lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink()) continue;
    rmSync(link, { recursive: true, force: true });
    symlinkSync(folder, link, "junction");
  }
}
