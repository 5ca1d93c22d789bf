// The package tidegate-replay: the wasm of crates/replay with its glue (crates/xtask), wasm-opt, then tsdown.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./run.mjs";
import { once } from "./stamp.mjs";
import { FEATURES } from "./wasm.mjs";

const folder = "npm/tidegate-replay";
const generated = `${folder}/src/generated`;

function optimize() {
  run("wasm-opt", ["-O3", ...FEATURES, `${generated}/replay_bg.raw.wasm`, "-o", `${generated}/replay_bg.wasm`]);
  console.log(`replay: ${readFileSync(join(root, generated, "replay_bg.wasm")).length} bytes`);
}

export function replay() {
  run("cargo", ["run", "--quiet", "-p", "tidegate-xtask", "--", "replay", generated]);
  once(
    "wasm-opt-replay",
    {
      inputs: [`${generated}/replay_bg.raw.wasm`, "npm/scripts/replay.mjs", "node_modules/binaryen/package.json"],
      outputs: [`${generated}/replay_bg.wasm`],
    },
    optimize,
  );
  const own = ["src", "package.json", "tsdown.config.ts", "tsconfig.json"].map((path) => `${folder}/${path}`);
  once(
    "tsdown-replay",
    { inputs: [...own, "tsconfig.base.json", "package-lock.json"], outputs: [`${folder}/dist/index.js`] },
    () => run("tsdown", [], { cwd: new URL("../tidegate-replay", import.meta.url) }),
  );
}
