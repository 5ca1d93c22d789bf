// What folders have dependencies of their own for: the runtimes of tests/hosts, the compilers and the test runner of
// tests/packaging/stranger, the peers of tests/bench and the site's generator. They are large, so they are installed on demand.
import { installer } from "./bun.mjs";
import { env, once, run } from "./run.mjs";

const NPM = ["--ignore-scripts", "--no-audit", "--no-fund"];

const ci = (name, ...more) =>
  once(
    name,
    { inputs: ["package-lock.json"], outputs: ["node_modules/.package-lock.json"], extra: process.version },
    () => run("npm", ["ci", ...more, ...NPM]),
  );

/** The workspace's own. No package here needs its install script. */
export const installWorkspace = () => ci("npm-ci");
/** What `npm start` needs: the `dependencies` of package.json, a quarter of all. */
export const installStart = () => ci("npm-ci-start", "--omit=dev");

const BETTER_SQLITE3 = "tests/hosts/node_modules/better-sqlite3/build/Release/better_sqlite3.node";

const install = (name, folder) =>
  once(
    `${name}-npm-ci`,
    { inputs: [`${folder}/package-lock.json`], outputs: [`${folder}/node_modules`], extra: process.version },
    () => run(...installer(), { cwd: new URL(`../../${folder}/`, import.meta.url) }),
  );

export const installRuntimes = async () => {
  await install("hosts", "tests/hosts");
  // The one dependency of the tests with a native part.
  await once(
    "better-sqlite3",
    { inputs: ["tests/hosts/package-lock.json"], outputs: [BETTER_SQLITE3], extra: process.version },
    // Without optimization, which is most of its compilation: no test has more than a few rows.
    () => {
      const flags = { CFLAGS: "-O0", CXXFLAGS: "-O0" };
      return run("npm", ["rebuild", "better-sqlite3", "--prefix", "tests/hosts"], { env: { ...env, ...flags } });
    },
  );
  await install("pool-workers", "tests/hosts/pool-workers");
  await install("react-native", "tests/hosts/react-native");
  await install("nodes", "tests/hosts/node");
};
export const installStranger = () => install("stranger", "tests/packaging/stranger");
export const installPeers = () => install("bench", "tests/bench");
export const installSite = () => install("site", "npm/site");
