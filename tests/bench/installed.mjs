// Which peers are installed.
import { existsSync, readFileSync } from "node:fs";

const here = new URL("./", import.meta.url);
const read = (url) => JSON.parse(readFileSync(url, "utf8"));
const manifest = (name) => new URL(`node_modules/${name}/package.json`, here);

/** The version of an installed peer. */
export function versionOf(name) {
  return read(manifest(name)).version;
}

/** The version of the package under test. */
export function ourVersion() {
  return read(new URL("../../npm/tidegate/package.json", here)).version;
}

/** Peers that package.json pins and node_modules lacks, or holds in another version. */
export function missing() {
  return Object.entries(read(new URL("package.json", here)).dependencies)
    .filter(([name, version]) => !existsSync(manifest(name)) || versionOf(name) !== version)
    .map(([name, version]) => `${name}@${version}`);
}
