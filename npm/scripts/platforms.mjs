// `npm run build:platforms`: the addon for every platform that this machine can build, and a list of the others with the reason.
//
// node npm/scripts/platforms.mjs linux-x64-gnu linux-arm64-gnu    only these; fails if one cannot be built
//
// zig links Linux and macOS (`pip install ziglang cargo-zigbuild`), so that the addon needs no newer C library than the
// oldest system that Node.js 20 supports. Windows' MSVC is linked on Windows.
import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { glibcOf, OLDEST_GLIBC } from "./glibc.mjs";
import { PLATFORMS } from "./linked.mjs";
import { output, root, run, stop } from "./run.mjs";

const SOURCES = "lib/rustlib/src/rust/library";
/** As cargo has it. */
const RUSTC = process.env.RUSTC ?? "rustc";
const sysroot = output(RUSTC, ["--print", "sysroot"]) ?? stop("Rust is needed: https://rustup.rs");
const host = output(RUSTC, ["-vV"])
  ?.split("\n")
  .find((line) => line.startsWith("host: "))
  ?.slice(6);

const hasLibrary = (target) => existsSync(join(sysroot, "lib", "rustlib", target, "lib"));

/** Why this machine cannot build for a target, or `undefined`. */
function obstacle(target, zig) {
  if (!hasLibrary(target) && !existsSync(join(sysroot, SOURCES))) return `rustup target add ${target}`;
  if (target.endsWith("-msvc") && process.platform !== "win32") return "Windows, with MSVC";
  if (target.endsWith("-darwin") && process.platform !== "darwin" && !process.env.SDKROOT) return "macOS, or its SDK";
  if (zig && output("cargo-zigbuild", ["--version"]) === undefined) return "pip install ziglang cargo-zigbuild";
  return undefined;
}

/** Builds one addon; says what it needs instead, where it cannot. */
async function build(platform) {
  const target = PLATFORMS[platform];
  const zig = target.includes("-linux-") || (target.endsWith("-darwin") && process.platform !== "darwin");
  const missing = obstacle(target, zig);
  if (missing !== undefined) return `needs: ${missing}`;
  const triple = zig && target.endsWith("-gnu") ? `${target}.${OLDEST_GLIBC}` : target;
  const env = { ...process.env };
  // A library that Node.js loads uses the C library of the process, with musl too.
  if (target.endsWith("-musl")) env.RUSTFLAGS = `${env.RUSTFLAGS ?? ""} -C target-feature=-crt-static`.trim();
  const standard = [];
  if (!hasLibrary(target)) {
    // Builds the standard library from source, which requires an option that stable Rust calls unstable.
    standard.push("-Zbuild-std=std,panic_unwind");
    env.RUSTC_BOOTSTRAP = "1";
  }
  const options = ["--lib", "--package", "tidegate-node", "--release", "--target", triple];
  await run("cargo", [zig ? "zigbuild" : "build", ...standard, ...options], { env });
  const file = target.endsWith("-darwin")
    ? "libtidegate_node.dylib"
    : target.endsWith("-msvc")
      ? "tidegate_node.dll"
      : "libtidegate_node.so";
  const folder = process.env.CARGO_TARGET_DIR ?? join(root, "target");
  const addon = join(root, "npm", platform, `tidegate.${platform}.node`);
  mkdirSync(join(root, "npm", platform), { recursive: true });
  copyFileSync(join(folder, target, "release", file), addon);
  if (!triple.endsWith(OLDEST_GLIBC)) return "built";
  const needs = glibcOf(addon);
  if (needs.localeCompare(OLDEST_GLIBC, "en", { numeric: true }) > 0) stop(`${addon} needs glibc ${needs}`);
  return `built; needs glibc ${needs}`;
}

const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => PLATFORMS[name] === undefined);
if (unknown.length > 0) stop(`no platform ${unknown.join(", ")}; there are ${Object.keys(PLATFORMS).join(", ")}`);
const rows = [];
for (const platform of chosen.length > 0 ? chosen : Object.keys(PLATFORMS))
  rows.push([platform, await build(platform)]);
console.log(`\nOn ${host}:`);
for (const [platform, result] of rows) console.log(`${platform.padEnd(18)} ${result}`);
const failed = rows.filter(([, result]) => !result.startsWith("built"));
if (failed.length === rows.length || (chosen.length > 0 && failed.length > 0)) process.exitCode = 1;
