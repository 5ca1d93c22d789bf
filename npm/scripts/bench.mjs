// `npm run bench`: the figures of the site and the README. tests/bench has the peers it compares with as dependencies of its own.
import { build } from "./build.mjs";
import { installPeers } from "./install.mjs";
import { run } from "./run.mjs";

await build();
await installPeers();
await run("npm", ["run", "--silent", "bench", "--", ...process.argv.slice(2)], {
  cwd: new URL("../../tests/bench/", import.meta.url),
});
