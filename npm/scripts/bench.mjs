// `npm run bench`: the figures of the site and the README. tests/bench has the peers it compares with as dependencies of its own.
// First: it refuses a wrong option before anything is built.
import "../../tests/bench/options.mjs";
import { build } from "./build.mjs";
import { installPeers } from "./install.mjs";

await build();
await installPeers();
// It reads the arguments of this process.
await import("../../tests/bench/run.mjs");
