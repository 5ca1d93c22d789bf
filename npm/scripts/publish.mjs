// Publishes every npm package. `node npm/scripts/publish.mjs --dry-run` prints what it would do with the current build.
// Without `--dry-run` all platforms must be built; only the release workflow may publish.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { built, stageAll } from "./packages.mjs";
import { PLATFORMS } from "./linked.mjs";
import { output, root, run, stop } from "./run.mjs";

const dry = process.argv.includes("--dry-run");
const absent = Object.keys(PLATFORMS).filter((name) => !built().includes(name));
if (!dry && absent.length > 0) stop(`these addons are not built: ${absent.join(", ")}`);

for (const folder of stageAll(join(root, "target", "staged"))) {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  // Continues a release that stopped half way.
  if (!dry && output("npm", ["view", `${name}@${version}`, "version"])) {
    console.log(`${name} ${version} is there already`);
    continue;
  }
  const tag = version.includes("-") ? "next" : "latest";
  const options = ["--access", "public", "--ignore-scripts", "--tag", tag, dry ? "--dry-run" : "--provenance"];
  await run("npm", ["publish", ...options], { cwd: folder });
}
if (absent.length > 0) console.log(`Left out, for they are not built here: ${absent.join(", ")}`);
