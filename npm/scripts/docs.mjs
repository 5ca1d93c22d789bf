// `npm run docs`: builds the complete site in npm/site/dist: guides, API pages, the playground, Rust documentation. Any static
// server can serve it, offline.
//
//   npm run docs -- --serve             and serves it (PORT chooses the port)
//   npm run docs -- --base /tidegate/   if it is not at the root of its host
import { cpSync, existsSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { FOLDERS } from "../site/folders.mjs";
import { linked } from "../site/linked.mjs";
import { build } from "./build.mjs";
import { installSite } from "./install.mjs";
import { once, root, run } from "./run.mjs";

const site = "npm/site";
const cwd = new URL("../site/", import.meta.url);

/** The published and documented crates. */
const CRATES = ["tidegate-core", "tidegate-table", "tidegate-file", "tidegate-policy"];

function api() {
  const inputs = ["npm/tidegate/src", "npm/tidegate/package.json", `${site}/api.mjs`, `${site}/package-lock.json`];
  return once("site-api", { inputs, outputs: [`${site}/api/index.md`] }, () => {
    rmSync(new URL("api", cwd), { recursive: true, force: true });
    return run(process.execPath, ["api.mjs"], { cwd });
  });
}

/** The playground without its server. */
function playground(into) {
  return run("vite", [
    "build",
    "examples/playground",
    "--mode",
    "site",
    "--base",
    "./",
    "--outDir",
    into,
    "--emptyOutDir",
  ]);
}

async function rust(into) {
  rmSync(join(root, "target", "doc"), { recursive: true, force: true });
  // A broken link is a warning.
  const env = { ...process.env, RUSTDOCFLAGS: "-D warnings" };
  // In the profile of the tests, as clippy, which checks the same dependencies.
  const options = ["--quiet", "--no-deps", "--profile", "test"];
  await run("cargo", ["doc", ...options, ...CRATES.flatMap((crate) => ["--package", crate])], { env });
  cpSync(join(root, "target", "doc"), into, { recursive: true });
  rmSync(join(into, ".lock"), { force: true });
}

export async function docs(base = "/") {
  await installSite();
  const pages = Object.keys(FOLDERS).filter((folder) => existsSync(join(root, site, folder)));
  const own = [
    ".vitepress",
    ...pages,
    "folders.mjs",
    "linked.mjs",
    "search.mjs",
    "source",
    "public",
    "index.md",
    "api",
    "package-lock.json",
  ];
  // The site shows the files that its pages link to.
  const shown = linked().filter((path) => statSync(join(root, path)).isFile());
  const others = ["examples/playground/src", "examples/server/sandbox.mjs", "npm/tidegate/dist", ...shown];
  const crates = CRATES.map((crate) => `crates/${crate.replace("tidegate-", "")}/src`);
  await api();
  const inputs = [...own.map((path) => `${site}/${path}`), ...others, ...crates, "npm/scripts/docs.mjs"];
  await once("site", { inputs, outputs: [`${site}/dist/index.html`], extra: base }, async () => {
    await run("npm", ["exec", "--", "vitepress", "build"], { cwd, env: { ...process.env, DOCS_BASE: base } });
    await playground(join(root, site, "dist", "playground"));
    await rust(join(root, site, "dist", "rust"));
  });
}

/** The argument after an option. */
const after = (word) => (process.argv.includes(word) ? process.argv[process.argv.indexOf(word) + 1] : undefined);

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await build();
  await docs(after("--base"));
  console.log(`\nthe site is in ${site}/dist`);
  if (process.argv.includes("--serve")) {
    await run("npm", ["exec", "--", "vitepress", "preview", "--port", process.env.PORT ?? "4173"], { cwd });
  }
}
