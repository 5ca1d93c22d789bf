// Builds everything that a user installs. What is fresh is left alone.
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { addon } from "./addon.mjs";
import { replay } from "./replay.mjs";
import { root, run } from "./run.mjs";
import { setup } from "./setup.mjs";
import { once } from "./stamp.mjs";
import { wasm } from "./wasm.mjs";

function javascript() {
  const own = ["src", "package.json", "tsdown.config.ts", "tsconfig.json"].map((path) => `npm/tidegate/${path}`);
  once(
    "tsdown",
    { inputs: [...own, "tsconfig.base.json", "package-lock.json"], outputs: ["npm/tidegate/dist/index.js"] },
    () => {
      rmSync(join(root, "npm/tidegate/dist"), { recursive: true, force: true });
      run("tsdown", [], { cwd: new URL("../tidegate", import.meta.url) });
    },
  );
}

/** The registry shows the package's own copies, where links that are relative to the repository's root would lead nowhere. */
function documents() {
  const at = (name) => join(root, "npm", "tidegate", name);
  copyFileSync(join(root, "LICENSE"), at("LICENSE"));
  const { repository } = JSON.parse(readFileSync(at("package.json"), "utf8"));
  const url = repository.url.replace(/^git\+|\.git$/g, "");
  const readme = readFileSync(join(root, "README.md"), "utf8")
    .replace(/\]\((?![a-z]+:|#)/g, `](${url}/blob/main/`)
    .replace(/ (src|srcset)="(?![a-z]+:)/g, ` $1="${url}/raw/main/`);
  writeFileSync(at("README.md"), readme);
}

/** The package without its addon: enough to run it in memory, and on stores behind a client. */
export function buildPackage() {
  setup();
  wasm();
  javascript();
}

export function build() {
  buildPackage();
  addon();
  replay();
  documents();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) build();
