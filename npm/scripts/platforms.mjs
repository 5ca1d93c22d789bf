// `npm run build:platforms`: the addon for every platform that this machine can build, and a list of the others with the reason.
//
// node npm/scripts/platforms.mjs linux-x64-gnu darwin-arm64    only these; fails if one cannot be built
//
// zig compiles the C code and links for Linux, for macOS (without Apple's SDK) and for MinGW, so that an addon needs no newer
// system than Node.js 20 does. It is installed in `target/zig`, unless `cargo-zigbuild` is on the PATH. MSVC links on Windows only.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { glibcOf, OLDEST_GLIBC } from "./glibc.mjs";
import { PLATFORMS } from "./linked.mjs";
import { env, once, output, root, run, stop } from "./run.mjs";

/** The oldest macOS that Node.js 20 supports. */
const OLDEST_MACOS = "11.0";
/** Not published: a build for Windows that Linux can make, which shows that the code compiles and links. The published one is MSVC's. */
const MINGW = { "win32-x64-gnu": "x86_64-pc-windows-gnu" };
const TARGETS = { ...PLATFORMS, ...MINGW };
const TARGET_FOLDER = process.env.CARGO_TARGET_DIR ?? join(root, "target");
const ZIG = join(root, "target", "zig");
/** As cargo has it. */
const RUSTC = process.env.RUSTC ?? "rustc";
const sysroot = output(RUSTC, ["--print", "sysroot"]) ?? stop("Rust is needed: https://rustup.rs");
const host = output(RUSTC, ["-vV"])
  ?.split("\n")
  .find((line) => line.startsWith("host: "))
  ?.slice(6);

/** Installs zig and cargo-zigbuild, and returns the PATH with them. */
export async function zigPath() {
  if (output("cargo-zigbuild", ["--version"]) !== undefined) return env.PATH;
  const bin = join(ZIG, "bin");
  await once("zig", { inputs: ["npm/scripts/platforms.mjs"], outputs: ["target/zig/bin/cargo-zigbuild"] }, async () => {
    await run("python3", ["-m", "venv", ZIG]);
    await run(join(bin, "pip"), ["install", "--quiet", "ziglang==0.17.1", "cargo-zigbuild==0.24.0"]);
  });
  return bin + delimiter + env.PATH;
}

/** napi's build script links with `libnode.dll`. The addon looks up Node-API when it is loaded, so an empty archive will do. */
function emptyLibnode() {
  const folder = join(TARGET_FOLDER, "libnode");
  mkdirSync(folder, { recursive: true });
  for (const name of ["libnode.a", "libnode.dll"]) writeFileSync(join(folder, name), "!<arch>\n");
  return folder;
}

/** What a target needs in the environment of cargo. */
function environment(target, path) {
  const settings = { ...env, PATH: path };
  // As crates/xtask does.
  const cargoHome = env.CARGO_HOME ?? join(homedir(), ".cargo");
  const flags = [`--remap-path-prefix=${join(cargoHome, "registry", "src")}=crates`];
  // A library that Node.js loads uses the C library of the process, with musl too.
  if (target.endsWith("-musl")) flags.push("-C", "target-feature=-crt-static");
  if (target.endsWith("-darwin")) {
    settings.MACOSX_DEPLOYMENT_TARGET = OLDEST_MACOS;
    // Not the path where it was built.
    flags.push("-C", "link-arg=-Wl,-install_name,@rpath/tidegate.node");
  }
  if (target.endsWith("-windows-gnu")) {
    settings.LIBNODE_PATH = emptyLibnode();
    // LMDB's, which its crate names for MSVC only.
    flags.push("-l", "advapi32");
  }
  settings.RUSTFLAGS = [env.RUSTFLAGS, ...flags].filter(Boolean).join(" ");
  return settings;
}

const fileOf = (target) =>
  target.includes("-windows-")
    ? "tidegate_node.dll"
    : `libtidegate_node.${target.endsWith("-darwin") ? "dylib" : "so"}`;

/** Where the addon for a platform is, once it is built here. */
export const addonOf = (platform) =>
  PLATFORMS[platform] === undefined
    ? join(TARGET_FOLDER, TARGETS[platform], "release", fileOf(TARGETS[platform]))
    : join(root, "npm", platform, `tidegate.${platform}.node`);

/** Copies a built library to its package, and returns where it is there. */
function place(platform, folder) {
  const addon = addonOf(platform);
  const library = readFileSync(join(folder, fileOf(PLATFORMS[platform])));
  if (existsSync(addon) && readFileSync(addon).equals(library)) return addon;
  // Not written in place: a process may have it loaded, and another may pack it.
  writeFileSync(`${addon}.new`, library);
  renameSync(`${addon}.new`, addon);
  return addon;
}

/** Builds the addon for this machine with its own linker and C library. */
export async function buildAddon() {
  const platform = Object.keys(PLATFORMS).find((name) => PLATFORMS[name] === host);
  if (platform === undefined) stop(`no addon for ${host}: the package runs its wasm there`);
  // As for other platforms: so macros and build scripts are compiled once for all of them.
  await run("cargo", ["build", "--lib", "--package", "tidegate-node", "--release", "--target", host], {
    env: environment(host, env.PATH),
  });
  place(platform, join(TARGET_FOLDER, host, "release"));
}

/** Builds one addon. Returns its state, or what it needs where it cannot be built here. */
async function build(platform) {
  const target = TARGETS[platform];
  if (target.endsWith("-msvc") && process.platform !== "win32") return "needs: Windows, with MSVC";
  const zig = target.includes("-linux-") || (process.platform !== "darwin" && !target.endsWith("-msvc"));
  if (!existsSync(join(sysroot, "lib", "rustlib", target, "lib"))) await run("rustup", ["target", "add", target]);
  const triple = zig && target.endsWith("-linux-gnu") ? `${target}.${OLDEST_GLIBC}` : target;
  const options = ["--lib", "--package", "tidegate-node", "--release", "--target", triple];
  const settings = environment(target, zig ? await zigPath() : env.PATH);
  await run("cargo", [zig ? "zigbuild" : "build", ...options], { env: settings });
  if (PLATFORMS[platform] === undefined) return "built, not published";
  const addon = place(platform, join(TARGET_FOLDER, target, "release"));
  if (!triple.endsWith(OLDEST_GLIBC)) return "built";
  const needs = glibcOf(addon);
  if (needs.localeCompare(OLDEST_GLIBC, "en", { numeric: true }) > 0) stop(`${addon} needs glibc ${needs}`);
  return `built; needs glibc ${needs}`;
}

/** Builds them one after another. @param {readonly string[]} platforms */
export async function buildPlatforms(platforms) {
  const rows = [];
  for (const platform of platforms) rows.push([platform, await build(platform)]);
  return rows;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const chosen = process.argv.slice(2);
  const unknown = chosen.filter((name) => TARGETS[name] === undefined);
  if (unknown.length > 0) stop(`no platform ${unknown.join(", ")}; there are ${Object.keys(TARGETS).join(", ")}`);
  const rows = await buildPlatforms(chosen.length > 0 ? chosen : Object.keys(TARGETS));
  console.log(`\nOn ${host}:`);
  for (const [platform, result] of rows) console.log(`${platform.padEnd(18)} ${result}`);
  const failed = rows.filter(([, result]) => !result.startsWith("built"));
  if (failed.length === rows.length || (chosen.length > 0 && failed.length > 0)) process.exitCode = 1;
}
