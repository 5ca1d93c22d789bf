// What `npm test` runs, in this order; and what `npm test -- --all` (which CI runs) adds.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { installPeers } from "./bench.mjs";
import { docs } from "./docs.mjs";
import { installRuntimes, installStranger } from "./install.mjs";
import { playground } from "./playground.mjs";
import { ask, root } from "./run.mjs";
import { STORES } from "./stores.mjs";

/**
 * @typedef {{ name: string, command: string[], counts: string, needs?: string[], prepare?: () => void, outside?: boolean }} Step
 *   `outside`: it drives programs that are not ours (servers, runtimes, browsers), on a machine that others may load. Where
 *   it fails it is run once more, which is said, and counted in the table at the end.
 */

const nextest = () => ask("cargo", ["nextest", "--version"]) !== undefined;

/** The tests of one project of vitest.config.ts, where it has files. */
const vitest = (project, options = {}) => ({
  name: options.name ?? project,
  command: ["vitest", "run", "--project", project, ...(options.filters ?? [])],
  counts: "vitest",
  needs: options.needs ?? [],
});

const testsIn = (folder) => {
  const path = join(root, folder);
  if (!existsSync(path)) return [];
  const files = readdirSync(path, { recursive: true }).map((file) => String(file).replaceAll("\\", "/"));
  return files.filter((file) => file.endsWith(".test.ts") && !file.includes("node_modules/")).sort();
};
const hasTests = (folder) => testsIn(folder).length > 0;

const check = (name, ...command) => ({ name, command, counts: "single" });

const folders = () => [
  ["unit", "npm/tidegate"],
  ...[
    "vectors",
    "convex",
    "threads",
    "middleware",
    "client",
    "react",
    "hosts",
    "examples",
    "readme",
    "site",
    "house",
    "simulation",
    "packaging",
  ].map((name) => [name, `tests/${name}`]),
];

/** What is true of some of them: what they have installed for themselves, and whether they drive what is not ours. */
const OUTSIDE = { outside: true };
const MORE = {
  hosts: { prepare: installRuntimes, ...OUTSIDE },
  middleware: OUTSIDE,
  client: OUTSIDE,
  react: OUTSIDE,
  examples: { prepare: playground, ...OUTSIDE },
  readme: { prepare: playground, ...OUTSIDE },
  site: { prepare: () => docs(), ...OUTSIDE },
  packaging: { prepare: installStranger },
};

/** A step for each store with a server, one for each that runs in other runtimes, and one for the rest. */
const stores = () => {
  const files = testsIn("tests/stores").map((file) => `tests/stores/${file}`);
  const own = STORES.filter(({ server, runtimes }) => server !== undefined || runtimes === true);
  const filesOf = ({ suite }) => files.filter((file) => file.startsWith(`${suite}/`));
  const rest = files.filter((file) => !own.some((store) => filesOf(store).includes(file)));
  return [
    vitest("stores", { name: "stores: in process", filters: rest }),
    ...own.map((store) => ({
      ...vitest("stores", { name: `stores: ${store.name}`, filters: filesOf(store), needs: programsOf(store) }),
      ...(store.runtimes === true ? { prepare: installRuntimes } : {}),
      ...OUTSIDE,
    })),
  ];
};
const programsOf = ({ server }) => (server === undefined ? [] : [server.program]);

/** All crates but the bench, which has no tests, and xtask, which has been built already, and not for speed. */
const TESTED = ["--workspace", "--exclude", "tidegate-xtask", "--exclude", "tidegate-bench"];

export function steps() {
  return [
    nextest()
      ? { name: "rust", command: ["cargo", "nextest", "run", ...TESTED, "--no-fail-fast"], counts: "nextest" }
      : { name: "rust", command: ["cargo", "test", ...TESTED, "--all-targets", "--no-fail-fast"], counts: "cargo" },
    {
      name: "xtask",
      command: ["cargo", "test", "--package", "tidegate-xtask", "--profile", "dev"],
      counts: "cargo",
    },
    {
      // The shared table's locks under a scheduler of its own: tests/locking.rs says how.
      name: "locking",
      command: [
        ...["cargo", "--config", 'build.rustflags=["--cfg","shuttle"]', "test", "--package", "tidegate-table"],
        ...["--test", "locking", "--target-dir", "target/shuttle"],
      ],
      counts: "cargo",
    },
    { name: "rust examples in docs", command: ["cargo", "test", ...TESTED, "--doc"], counts: "cargo" },
    check("vectors are fresh", "cargo", "run", "--quiet", "-p", "tidegate-oracle", "--bin", "vectors", "--", "--check"),
    check("types", "tsc", "--project", "npm/tidegate"),
    check("types of the replay", "tsc", "--project", "npm/tidegate-replay"),
    check("types of the tests", "tsc"),
    check("types of the playground", "tsc", "--project", "examples/playground"),
    ...folders()
      .filter(([, folder]) => hasTests(folder))
      .map(([project]) => ({ ...vitest(project), ...MORE[project] })),
    ...stores(),
    ...(hasTests("tests/bench") ? [{ ...vitest("bench"), prepare: installPeers, outside: true }] : []),
  ];
}

/** Builds each crate from what would be uploaded; those with `publish = false` are left out. */
const PUBLISH = ["publish", "--dry-run", "--workspace", "--allow-dirty", "--target-dir", "target/publish"];

/** What keeps the house in order; slower, and no user's concern. */
export function upkeep() {
  return [
    check("rust layout", "cargo", "fmt", "--all", "--check"),
    check("clippy", "cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"),
    {
      // From the inputs that were kept, 5 s a target, and always the same way: news are for those who look for them.
      name: "fuzz",
      command: [
        "cargo",
        "run",
        "--quiet",
        "--package",
        "tidegate-xtask",
        "--",
        "fuzz",
        "--seconds",
        "5",
        "--seed",
        "1",
      ],
      counts: "cargo",
      needs: ["c++"],
    },
    check("biome", "biome", "check", "--error-on-warnings"),
    check("rust docs", "cargo", "--config", 'build.rustdocflags=["-D","warnings"]', "doc", "--workspace", "--no-deps"),
    { ...check("crates as crates.io takes them", "cargo", ...PUBLISH), ...OUTSIDE },
    { ...check("packages as npm takes them", "node", "npm/scripts/publish.mjs", "--dry-run"), ...OUTSIDE },
    check("nothing generated is stale", "git", "diff", "--exit-code", "--stat"),
  ];
}
