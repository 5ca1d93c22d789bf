// What `npm test` runs, and what `npm test -- --all` (which CI runs) adds.
import { existsSync, readdirSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { docs } from "./docs.mjs";
import { installPeers, installRuntimes, installStranger } from "./install.mjs";
import { playground } from "./playground.mjs";
import { buildPlatforms } from "./platforms.mjs";
import { output, root } from "./run.mjs";
import { STORES } from "./stores.mjs";

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {string[]} command
 * @property {"cargo" | "nextest" | "vitest" | "single"} counts how its report is read
 * @property {boolean} [everyday] whether `npm test` runs it without `--all`
 * @property {string[]} [needs] programs without which it is skipped
 * @property {() => Promise<void>} [prepare]
 * @property {string} [uses] what only one step may use at a time
 */

const EVERYDAY = { everyday: true };

/** The tests of one project of vitest.config.ts, or its files that match. */
const vitest = (project, options = {}, name = project, filters = []) => ({
  name,
  command: ["vitest", "run", "--project", project, ...filters],
  counts: "vitest",
  ...options,
});
const check = (name, command, options = {}) => ({ name, command: command.split(" "), counts: "single", ...options });
const cargo = (name, command, options = {}) => ({ name, command: command.split(" "), counts: "cargo", ...options });
/** By the compiler of today; other tools need the one before it, in JavaScript, which takes several times as long. */
const types = (name, project, options) =>
  check(name, `node node_modules/typescript-7/bin/tsc --project ${project}`, options);

const testsIn = (folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .map((file) => `${folder}/${String(file).replaceAll("\\", "/")}`)
    .filter((file) => file.endsWith(".test.ts") && !file.includes("node_modules/"))
    .sort();

/** A step for each store with a server, one for each that runs in other runtimes, and one for the rest. */
const stores = () => {
  const files = testsIn("tests/stores");
  const own = STORES.filter(({ server, runtimes }) => server !== undefined || runtimes === true);
  const filesOf = ({ suite }) => files.filter((file) => file.startsWith(`${suite}/`));
  const rest = files.filter((file) => !own.some((store) => filesOf(store).includes(file)));
  return [
    vitest("stores", {}, "stores: in process", rest),
    ...own.map((store) => {
      const prepare = store.runtimes === true ? { prepare: installRuntimes } : {};
      const options = { needs: programsOf(store), ...prepare };
      return vitest("stores", options, `stores: ${store.name}`, filesOf(store));
    }),
  ];
};
const programsOf = ({ server }) => (server === undefined ? [] : [server.program]);

/** What a change of the package breaks first; the other files of tests/packaging wait for the full run. */
const PACKAGE = ["contents", "node", "bundles"].map((name) => `tests/packaging/${name}.test.ts`);
const packaging = () => testsIn("tests/packaging").filter((file) => !PACKAGE.includes(file) && !/works/.test(file));

/** The service: what starts no server, its stores, their keys on the command line (keys, top), and the proxies in front of it. */
const serve = () => {
  const servers = ["redis-server", "postgres"];
  const needs = { stores: servers, keys: servers, top: servers, proxies: ["nginx", "haproxy", "caddy", "python3"] };
  const fileOf = (name) => `tests/serve/${name}.test.ts`;
  const rest = testsIn("tests/serve").filter((file) => !Object.keys(needs).map(fileOf).includes(file));
  const others = Object.entries(needs).map(([name, programs]) =>
    vitest("serve", { needs: programs }, `serve: ${name}`, [fileOf(name)]),
  );
  return [vitest("serve", {}, "serve", rest), ...others];
};

/** The crates that decide and keep states. What the others depend on takes longer to build than all of these. */
const first = ["core", "table", "file", "policy", "oracle"].map((name) => ` --package tidegate-${name}`).join("");
/** Other platforms whose addon the full run builds. `npm run build:platforms` builds the rest, which takes minutes. */
export const FULL_RUN_PLATFORMS = ["linux-x64-musl", "darwin-arm64"];
const platforms = () => buildPlatforms(FULL_RUN_PLATFORMS);
const rust = (name, packages, options) =>
  output("cargo", ["nextest", "--version"]) === undefined
    ? cargo(name, `cargo test --tests --no-fail-fast${packages}`, options)
    : { ...cargo(name, `cargo nextest run --no-fail-fast${packages}`, options), counts: "nextest" };

/** Cargo keeps what an earlier dry run unpacked and compiled under the same version, and would use that again. */
const forgetCrates = async () => {
  rmSync(join(root, "target/publish"), { recursive: true, force: true });
  const sources = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "registry", "src");
  for (const registry of existsSync(sources) ? readdirSync(sources) : []) {
    // That of crates.io has a name; a dry run's has none before the dash.
    if (!registry.startsWith("-")) continue;
    rmSync(join(sources, registry), { recursive: true, force: true });
  }
};

/**
 * The steps that cargo runs: one after another, since cargo locks its folder. A full run tests all crates in one step: by
 * themselves, the first have dependencies with fewer features, which would be built twice.
 *
 * @returns {Step[]}
 */
export const cargoSteps = (full = true) => [
  rust("rust", full ? "" : first, EVERYDAY),
  // Of the same crates, but tests/locking, whose sources are the table's.
  cargo("rust examples in docs", "cargo test --workspace --exclude tidegate-bench --exclude tidegate-locking --doc"),
  check("rust layout", "cargo fmt --all --check"),
  // In the profile of the tests, which has built the macros.
  check("clippy", "cargo clippy --workspace --all-targets --profile test -- -D warnings"),
  // From the inputs that were kept, 3 s a target, and always the same way.
  cargo("fuzz", "cargo run --quiet --bin tidegate-xtask -- fuzz --seconds 3 --seed 1", { needs: ["c++"] }),
  // Builds each crate from what would be uploaded; those with `publish = false` are left out.
  check(
    "crates as crates.io takes them",
    "cargo publish --dry-run --workspace --allow-dirty --target-dir target/publish",
    { prepare: forgetCrates },
  ),
  // Here, since its preparation is cargo's.
  vitest("platforms", { prepare: platforms }),
];

/** The folder of the Rust documentation, which both of its steps write. */
const DOC = { uses: "target/doc" };

/** The steps that Node.js runs, beside those of cargo. @returns {Step[]} */
export const nodeSteps = () => [
  // Of the sources too; the build has checked their declarations.
  types("types", ".", EVERYDAY),
  types("types of the package", "npm/tidegate"),
  types("types of the replay", "npm/tidegate-replay"),
  types("types of the service", "npm/tidegate-serve"),
  types("types of the console", "npm/tidegate-console"),
  types("types of the console's page", "npm/tidegate-console/page"),
  types("types of the playground", "examples/playground"),
  vitest("unit", EVERYDAY),
  vitest("hosts", EVERYDAY, "builds", ["tests/hosts/builds"]),
  vitest("threads", EVERYDAY),
  vitest("packaging", EVERYDAY, "package", PACKAGE),
  vitest("readme", { ...EVERYDAY, prepare: playground }),
  // The longest come first, so that the last steps are short ones; one that needs cargo waits for its lock meanwhile.
  vitest("works", {}, "works with other tools"),
  vitest(
    "hosts",
    { prepare: installRuntimes },
    "hosts",
    testsIn("tests/hosts").filter((file) => !/\/builds\//.test(file)),
  ),
  vitest("simulation"),
  vitest("packaging", { prepare: installStranger }, "packaging", packaging()),
  vitest("site", { prepare: docs, ...DOC }),
  ...stores(),
  vitest("bench", { prepare: installPeers }),
  vitest("examples", { prepare: playground }),
  ...serve(),
  vitest("console"),
  vitest("react"),
  vitest("convex"),
  // In the profile of the tests, as clippy, which checks the same dependencies.
  check(
    "rust docs",
    `cargo --config build.rustdocflags=["-D","warnings"] doc --workspace --no-deps --profile test`,
    DOC,
  ),
  vitest("house"),
  check("biome", "biome check --error-on-warnings"),
  check("spelling and wording of the documents", "cspell lint --no-progress --quiet"),
  check("packages as npm takes them", "node npm/scripts/publish.mjs --dry-run"),
];

/** After all others, which may write. @returns {Step[]} */
export const lastSteps = () => [check("nothing generated is stale", "git diff --exit-code --stat")];
