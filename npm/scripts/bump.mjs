// `npm run bump -- 0.2.0` sets the one version of all crates and packages. Without a version it checks that they agree.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { MAIN, PLATFORMS } from "./linked.mjs";
import { root, run, stop } from "./run.mjs";

/** https://semver.org, without build metadata, which npm drops. */
const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[\da-z-]+(\.[\da-z-]+)*)?$/i;

const read = (file) => readFileSync(join(root, file), "utf8");

const MANIFESTS = [...MAIN, ...Object.keys(PLATFORMS)].map((name) => `npm/${name}/package.json`);

/** Every place of a version: the file, and the text before and after it. */
const places = () => [
  { file: "Cargo.toml", pattern: /^(version = ")([^"]+)(")/gm },
  { file: "Cargo.toml", pattern: /^(tidegate-[\w-]+ = \{.*\bversion = ")([^"]+)(")/gm },
  { file: "Cargo.lock", pattern: /^(name = "tidegate-[\w-]+"\nversion = ")([^"]+)(")/gm },
  ...MANIFESTS.map((file) => ({ file, pattern: /^( {2}"version": ")([^"]+)(")/gm })),
  // The service requires the package of its own version.
  { file: "npm/tidegate-serve/package.json", pattern: /^( {4}"tidegate": ")([^"]+)(")/gm },
  {
    file: "package-lock.json",
    pattern: /^( {4}"npm\/tidegate-serve": \{\n(?: {6}.*\n)*? {8}"tidegate": ")([^"]+)(")/gm,
  },
  ...MAIN.map((name) => ({
    file: "package-lock.json",
    pattern: new RegExp(`^( {4}"npm/${name}": \\{\\n(?: {6}"name": .*\\n)? {6}"version": ")([^"]+)(")`, "gm"),
  })),
];

/** Every place with its version, as `[file, version]`. A file without one is an error. */
export function versions() {
  return places().flatMap(({ file, pattern }) => {
    const found = [...read(file).matchAll(pattern)];
    if (found.length === 0) throw new Error(`${file} has no version where one is expected: ${pattern}`);
    return found.map((match) => [file, match[2]]);
  });
}

async function bump(version) {
  if (!VERSION.test(version)) stop(`a version is three numbers, as 0.2.0, and perhaps -rc.1; got ${version}`);
  for (const { file, pattern } of places()) {
    writeFileSync(
      join(root, file),
      read(file).replace(pattern, (_, before, _old, behind) => `${before}${version}${behind}`),
    );
  }
  // Both lock files must be as their own tools would write them.
  await run("cargo", ["metadata", "--quiet", "--locked", "--format-version", "1", "--no-deps"], { stdio: "ignore" });
  console.log(`All are ${version}. CHANGELOG.md needs its heading, then tag v${version}.`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [version] = process.argv.slice(2);
  if (version !== undefined) await bump(version);
  const all = new Set(versions().map(([, found]) => found));
  if (all.size > 1)
    stop(
      `versions differ:\n${versions()
        .map((row) => row.join(" "))
        .join("\n")}`,
    );
  if (version === undefined) console.log([...all][0]);
}
