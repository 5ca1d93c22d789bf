// The runtimes of tests/hosts: installed on demand, since they are large, and nobody needs them to work on anything else.
import { run } from "./run.mjs";
import { once } from "./stamp.mjs";

const cwd = new URL("../../tests/hosts/", import.meta.url);

export function installRuntimes() {
  once(
    "hosts-npm-ci",
    { inputs: ["tests/hosts/package-lock.json"], outputs: ["tests/hosts/node_modules"], extra: process.version },
    // Not `npm ci`: it refuses a lock file that lacks a platform's package which the registry does not have. The lock is
    // followed all the same, and not written.
    () => run("npm", ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd }),
  );
}
