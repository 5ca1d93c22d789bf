// What is linked into the published packages: crates, the C code that some of them build, Rust's standard library, and
// bundled npm packages. Own lines, because cargo-about and cargo-cyclonedx list crates only, and compile for minutes.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./run.mjs";

/**
 * @typedef {{ name: string, version: string, licence: string, about: string, purl?: string, authors: string[], files: string[] }} Part
 * `files`: its licences and notices; empty if its authors published none.
 */

/** napi's name of a platform, and Rust's. */
export const PLATFORMS = {
  "darwin-arm64": "aarch64-apple-darwin",
  "darwin-x64": "x86_64-apple-darwin",
  "linux-arm64-gnu": "aarch64-unknown-linux-gnu",
  "linux-arm64-musl": "aarch64-unknown-linux-musl",
  "linux-x64-gnu": "x86_64-unknown-linux-gnu",
  "linux-x64-musl": "x86_64-unknown-linux-musl",
  "win32-arm64-msvc": "aarch64-pc-windows-msvc",
  "win32-x64-msvc": "x86_64-pc-windows-msvc",
};

const WASM = "wasm32-unknown-unknown";
/** The packages without an addon, named like their folders, and the crates of their WebAssembly. */
const OF_WASM = {
  "tidegate-replay": ["tidegate-replay"],
  tidegate: ["tidegate-wasm", "tidegate-policy-wasm"],
  "tidegate-serve": [],
  "tidegate-console": [],
};
/** Every published package that is not a platform's, each after those that it depends on. */
export const MAIN = Object.keys(OF_WASM);

/** The crates that are linked into a package, and their target. */
const CRATES = (name) => OF_WASM[name]?.map((crate) => [crate, WASM]) ?? [["tidegate-node", PLATFORMS[name]]];

/** What crates build from C, which cargo does not list. */
const NATIVE = {
  "lmdb-master-sys": { name: "LMDB", licence: "OLDAP-2.8", folder: "lmdb/libraries/liblmdb" },
};
/** A crate with one of these may link code that is not Rust. */
const COMPILERS = ["cc", "cmake", "bindgen", "pkg-config"];

const output = (args) =>
  execFileSync("cargo", args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
    stdio: ["ignore", "pipe", "inherit"],
  });

let packages;
const metadata = () => {
  packages ??= new Map(
    JSON.parse(output(["metadata", "--format-version", "1", "--locked"])).packages.map((one) => [
      `${one.name} ${one.version}`,
      one,
    ]),
  );
  return packages;
};

const texts = (folder) =>
  readdirSync(folder)
    .filter((file) => /^(licen[cs]e|copying|copyright|notice|unlicense)/i.test(file))
    .sort()
    .map((file) => join(folder, file))
    // A link that was packed on Windows is a file that contains only the link's target.
    .filter((file) => read(file).length > 50);

function part(one) {
  const { name, version, license, repository, authors } = one;
  if (license === null) throw new Error(`${name} ${version} names no licence`);
  // Crates wrote OR as a slash before SPDX.
  const licence = license.replaceAll(/\s*\/\s*/g, " OR ");
  const about = repository ?? `https://crates.io/crates/${name}`;
  const files = texts(dirname(one.manifest_path));
  return { name, version, licence, about, purl: `pkg:cargo/${name}@${version}`, authors, files };
}

/** C code of a crate, as a separate part. */
function native(one) {
  const known = NATIVE[one.name];
  if (known === undefined) {
    const compiles = one.dependencies.some(({ kind, name }) => kind === "build" && COMPILERS.includes(name));
    // The crate may compile C: check it, and add it to the list above.
    if (compiles) throw new Error(`${one.name} may build C: name what it builds in NATIVE, npm/scripts/linked.mjs`);
    return [];
  }
  const folder = join(dirname(one.manifest_path), known.folder);
  if (!existsSync(folder)) throw new Error(`${one.name} has no ${known.folder}: see NATIVE in npm/scripts/linked.mjs`);
  const about = `C, as ${one.name} ${one.version} has it`;
  return [{ name: known.name, version: one.version, licence: known.licence, about, authors: [], files: texts(folder) }];
}

/** Rust's standard library, which every target links. */
function standard() {
  const version = execFileSync("rustc", ["--version"], { cwd: root, encoding: "utf8" }).split(" ")[1];
  const about = "https://github.com/rust-lang/rust";
  const authors = ["The Rust Project contributors"];
  return { name: "the Rust standard library", version, licence: "MIT OR Apache-2.0", about, authors, files: [] };
}

/** The names of the npm packages that the build bundled: of files in `dist/bundled/<package>`, or those that it lists. */
function namesBundled(name) {
  const folder = join(root, "npm", name, "dist", "bundled");
  if (existsSync(`${folder}.json`)) return JSON.parse(read(`${folder}.json`));
  if (!existsSync(folder)) return [];
  const scoped = (one) =>
    one.startsWith("@") ? readdirSync(join(folder, one)).map((inner) => `${one}/${inner}`) : [one];
  return readdirSync(folder).flatMap(scoped);
}

/** The npm packages that the build bundled; for those without a file of their licence, whom their README names as holders. */
function bundled(name) {
  return namesBundled(name).map((one) => {
    const folder = join(root, "node_modules", one);
    const { version, license, homepage } = JSON.parse(read(join(folder, "package.json")));
    const about = homepage ?? `https://www.npmjs.com/package/${one}`;
    const purl = `pkg:npm/${one.replace("@", "%40")}@${version}`;
    const files = texts(folder);
    const named = files.length > 0 ? [] : read(join(folder, "README.md")).matchAll(/^Copyright \(c\) (.+)$/gm);
    const authors = Array.from(named, ([, holder]) => holder);
    return { name: one, version, licence: license, about, purl, authors, files };
  });
}

/**
 * Everything that is linked into a package, sorted by name, without the crates of this repository.
 *
 * @param {string} name one of {@link MAIN}, or a platform as {@link PLATFORMS} has it
 * @returns {Part[]}
 */
export function linked(name) {
  const found = new Map();
  for (const [crate, target] of CRATES(name)) {
    const edges = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe", "--format", "{p}"];
    for (const line of output(["tree", "--locked", "--package", crate, "--target", target, ...edges])
      .trim()
      .split("\n")) {
      const [, crateName, version] = /^(\S+) v(\S+)/.exec(line);
      const one = metadata().get(`${crateName} ${version}`);
      if (one.source === null) continue; // a crate of this repository
      for (const each of [part(one), ...native(one)]) found.set(`${each.name} ${each.version}`, each);
    }
  }
  for (const one of bundled(name)) found.set(`${one.name} ${one.version}`, one);
  const sorted = [...found.values()].sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
  return CRATES(name).length === 0 ? sorted : [standard(), ...sorted];
}

export const read = (file) => readFileSync(file, "utf8").trim();
