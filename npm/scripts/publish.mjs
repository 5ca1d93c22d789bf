// `node npm/scripts/publish.mjs <folder>` publishes the tarballs that packages.mjs made there. Only the release workflow
// may, in a job that can prove who it is to npm: so this imports no installed package, and runs nothing but npm.
// `node npm/scripts/publish.mjs --dry-run` prints what npm would do with the current build.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { MAIN, PLATFORMS } from "./linked.mjs";
import { output, root, run, stop } from "./run.mjs";

async function dryRun() {
  const { built, stageAll } = await import("./packages.mjs");
  const absent = Object.keys(PLATFORMS).filter((name) => !built().includes(name));
  for (const folder of stageAll(join(root, "target", "staged"))) {
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    await run("npm", ["publish", ...options(version), "--dry-run"], { cwd: folder });
  }
  if (absent.length > 0) console.log(`Left out, for they are not built here: ${absent.join(", ")}`);
}

const options = (version) => [
  "--access",
  "public",
  "--ignore-scripts",
  "--tag",
  version.includes("-") ? "next" : "latest",
];

async function publish(folder) {
  const packed = JSON.parse(readFileSync(join(folder, "packages.json"), "utf8"));
  const names = packed.map(({ name }) => name);
  const absent = [...Object.keys(PLATFORMS).map((name) => `@tidegate/${name}`), ...MAIN].filter(
    (name) => !names.includes(name),
  );
  if (absent.length > 0) stop(`these packages are not in ${folder}: ${absent.join(", ")}`);
  for (const { name, version, filename } of packed) {
    // Continues a release that stopped half way.
    if (output("npm", ["view", `${name}@${version}`, "version"])) {
      console.log(`${name} ${version} is there already`);
      continue;
    }
    await run("npm", ["publish", resolve(folder, filename), ...options(version), "--provenance"]);
  }
}

const [word = "--dry-run"] = process.argv.slice(2);
await (word === "--dry-run" ? dryRun() : publish(word));
