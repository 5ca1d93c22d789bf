// `npm run bench`: the figures of the site and the README. tests/bench has the peers it compares with as dependencies of its own.
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { run } from "./run.mjs";
import { once } from "./stamp.mjs";

const cwd = new URL("../../tests/bench/", import.meta.url);

/** Installed on demand: only the figures need the peers. */
export function installPeers() {
  once(
    "bench-npm-ci",
    { inputs: ["tests/bench/package-lock.json"], outputs: ["tests/bench/node_modules"], extra: process.version },
    () => run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd }),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  build();
  installPeers();
  run("npm", ["run", "--silent", "bench", "--", ...process.argv.slice(2)], { cwd });
}
