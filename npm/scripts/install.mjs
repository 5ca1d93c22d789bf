// The runtimes and the runner of tests/hosts, the compilers and the test runner of tests/packaging/stranger, and the site's generator: installed
// on demand, since they are large and little else needs them.
import { run } from "./run.mjs";
import { once } from "./stamp.mjs";

const BETTER_SQLITE3 = "tests/hosts/node_modules/better-sqlite3/build/Release/better_sqlite3.node";

/** What a folder has dependencies of its own for. */
function install(name, folder) {
  once(
    `${name}-npm-ci`,
    { inputs: [`${folder}/package-lock.json`], outputs: [`${folder}/node_modules`], extra: process.version },
    // Not `npm ci`: it refuses a lock file that lacks a platform's package which the registry does not have. The lock is
    // followed all the same, and not written.
    () =>
      run("npm", ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"], {
        cwd: new URL(`../../${folder}/`, import.meta.url),
      }),
  );
}

export const installRuntimes = () => {
  install("hosts", "tests/hosts");
  // The one dependency of the tests with a native part.
  once(
    "better-sqlite3",
    { inputs: ["tests/hosts/package-lock.json"], outputs: [BETTER_SQLITE3], extra: process.version },
    () => run("npm", ["rebuild", "better-sqlite3", "--prefix", "tests/hosts"]),
  );
  install("pool-workers", "tests/hosts/pool-workers");
  install("react-native", "tests/hosts/react-native");
};
export const installStranger = () => install("stranger", "tests/packaging/stranger");
export const installSite = () => install("site", "npm/site");
