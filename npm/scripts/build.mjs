// Builds everything that a user installs. What is fresh is left alone.
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { addon } from "./addon.mjs";
import { root, run } from "./run.mjs";
import { setup } from "./setup.mjs";
import { once } from "./stamp.mjs";
import { wasm } from "./wasm.mjs";

function javascript() {
  const own = ["src", "package.json", "tsdown.config.ts", "tsconfig.json"].map((path) => `npm/tidegate/${path}`);
  once(
    "tsdown",
    { inputs: [...own, "tsconfig.base.json", "package-lock.json"], outputs: ["npm/tidegate/dist/index.js"] },
    () => run("tsdown", [], { cwd: new URL("../tidegate", import.meta.url) }),
  );
}

/** The registry shows the package's own copies. */
function documents() {
  for (const name of ["LICENSE", "README.md"]) {
    if (existsSync(join(root, name))) copyFileSync(join(root, name), join(root, "npm", "tidegate", name));
  }
}

export function build() {
  setup();
  wasm();
  addon();
  javascript();
  documents();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) build();
