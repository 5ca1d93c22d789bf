// `npm run build`: everything that a user installs. What is fresh is left alone. Cargo builds while npm installs.
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { consolePage } from "./console.mjs";
import { installStart, installWorkspace } from "./install.mjs";
import { buildAddon } from "./platforms.mjs";
import { env, once, output, root, run, stop } from "./run.mjs";
import { GENERATED, optimizeWasm, REPLAY, writeBare } from "./wasm.mjs";

const LEAST_NODE = [20, 19];
const WASM = "wasm32-unknown-unknown";

/** Checks that the machine has Node.js and Rust, and installs what the workspace needs. Fast when there is nothing to do. */
export async function setup() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < LEAST_NODE[0] || (major === LEAST_NODE[0] && minor < LEAST_NODE[1])) {
    stop(`Node.js ${LEAST_NODE.join(".")} or newer is needed; this is ${process.version}: https://nodejs.org`);
  }
  if (output("cargo", ["--version"]) === undefined) stop("Rust is needed. Install it with rustup: https://rustup.rs");
  const sysroot = output("rustc", ["--print", "sysroot"]);
  if (sysroot === undefined || !existsSync(join(sysroot, "lib", "rustlib", WASM, "lib"))) {
    if (output("rustup", ["--version"]) === undefined) {
      stop(`this Rust cannot build for ${WASM}, and rustup, which adds it, is missing: https://rustup.rs`);
    }
    await run("rustup", ["target", "add", WASM]);
  }
}

/** No package is named, so that its dependencies have the features of the tests, which then find them built. */
const xtask = (...task) => run("cargo", ["run", "--quiet", "--bin", "tidegate-xtask", "--", ...task]);

/** tsdown, into an empty `dist`. With `only`, these entries alone, and no declarations. */
function javascript(name, only, output = "index") {
  const folder = `npm/${name}`;
  const paths = ["src", "package.json", "tsdown.config.ts", "tsconfig.json"].map((path) => `${folder}/${path}`);
  const inputs = [...paths, "tsconfig.base.json", "package-lock.json"];
  const made = { inputs, outputs: [`${folder}/dist/${output}.js`], extra: only?.join(" ") };
  const more = only === undefined ? {} : { env: { ...env, TIDEGATE_ENTRIES: only.join(" ") } };
  return once(`tsdown-${name}`, made, () => {
    rmSync(join(root, folder, "dist"), { recursive: true, force: true });
    return run("tsdown", [], { cwd: join(root, folder), ...more });
  });
}

/** The links under which the package finds the addons that are built, as an installed package does. */
function linkAddons() {
  const scope = join(root, "node_modules", "@tidegate");
  mkdirSync(scope, { recursive: true });
  for (const platform of readdirSync(join(root, "npm"))) {
    const folder = join(root, "npm", platform);
    if (!existsSync(join(folder, `tidegate.${platform}.node`))) continue;
    const link = join(scope, platform);
    if (lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink()) continue;
    rmSync(link, { recursive: true, force: true });
    symlinkSync(folder, link, "junction");
  }
}

/** The registry shows the package's own copies, where links relative to the repository's root would lead nowhere. */
function documents() {
  const at = (name) => join(root, "npm", "tidegate", name);
  copyFileSync(join(root, "LICENSE"), at("LICENSE"));
  const { repository } = JSON.parse(readFileSync(at("package.json"), "utf8"));
  const url = repository.url.replace(/^git\+|\.git$/g, "");
  const readme = readFileSync(join(root, "README.md"), "utf8")
    .replace(/\]\((?![a-z]+:|#)/g, `](${url}/blob/main/`)
    .replace(/ (src|srcset)="(?![a-z]+:)/g, ` $1="${url}/raw/main/`);
  writeFileSync(at("README.md"), readme);
}

/** The package without its addon: enough to run it in memory, and on stores behind a client. */
export async function buildPackage() {
  await setup();
  mkdirSync(join(root, GENERATED), { recursive: true });
  await Promise.all([installWorkspace(), xtask("wasm", GENERATED)]);
  await optimizeWasm();
  await javascript("tidegate");
}

/** What the example server and its page import. */
const STARTED = [".", "./store", "./http"];

/**
 * As much of the package as the example needs, with an engine that is built quickly. In a clone where the workspace is
 * installed, the package as it ships: there most of it is built.
 */
export async function buildForStart() {
  if (existsSync(join(root, "node_modules", ".cache", "tidegate", "npm-ci"))) return buildPackage();
  await setup();
  mkdirSync(join(root, GENERATED), { recursive: true });
  const cargo = async () => {
    await run("cargo", ["run", "--quiet", "-p", "tidegate-xtask", "--no-default-features", "--", "bounds", GENERATED]);
    await run("cargo", ["build", "--quiet", "-p", "tidegate-wasm", "--lib", "--profile", "start", "--target", WASM]);
  };
  await Promise.all([installStart(), cargo()]);
  const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
  writeBare(join(target, WASM, "start", "tidegate_wasm.wasm"));
  await javascript("tidegate", STARTED);
}

export async function build() {
  await setup();
  mkdirSync(join(root, GENERATED), { recursive: true });
  const wasm = xtask("wasm", GENERATED);
  const installed = installWorkspace();
  const replay = wasm.then(() => xtask("replay", REPLAY));
  const addon = replay.then(buildAddon);
  await Promise.all([wasm, installed]);
  await optimizeWasm();
  await javascript("tidegate");
  await consolePage();
  await javascript("tidegate-console");
  await replay;
  await javascript("tidegate-replay");
  await javascript("tidegate-serve", undefined, "cli");
  await addon;
  linkAddons();
  documents();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await build();
