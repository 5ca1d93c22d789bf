// Brings a machine that has Node.js, npm and Rust to where the build can start. Fast when there is nothing to do.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ask, run, stop } from "./run.mjs";
import { once } from "./stamp.mjs";

const LEAST_NODE = [20, 19];
const WASM = "wasm32-unknown-unknown";

function checkNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1])) return;
  stop(
    `Node.js ${LEAST_NODE.join(".")} or newer is needed; this is ${process.version}. Get one from https://nodejs.org`,
  );
}

function checkRust() {
  if (ask("cargo", ["--version"]) === undefined) {
    stop("Rust is needed, and `cargo` is not there. Get it with rustup: https://rustup.rs");
  }
  const sysroot = ask("rustc", ["--print", "sysroot"]);
  if (sysroot !== undefined && existsSync(join(sysroot, "lib", "rustlib", WASM, "lib"))) return;
  if (ask("rustup", ["--version"]) === undefined) {
    stop(`this Rust cannot build for ${WASM}, and there is no rustup to add it. Get rustup: https://rustup.rs`);
  }
  run("rustup", ["target", "add", WASM]);
}

export function setup() {
  checkNode();
  // No package here needs its install script.
  once(
    "npm-ci",
    { inputs: ["package-lock.json"], outputs: ["node_modules/.package-lock.json"], extra: process.version },
    () => run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]),
  );
  checkRust();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) setup();
