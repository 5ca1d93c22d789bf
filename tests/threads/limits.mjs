// Defines limits inline, repeatedly, on shared() and file(); prints how many the addon keeps, before and after.
// Run with --expose-gc; argv: the package's folder, one for the state, the number of calls.
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [root, folder, calls] = process.argv.slice(2);
const load = (entry) => import(pathToFileURL(join(root, "dist", `${entry}.js`)).href);
const { defineLimits } = await load("index");
const { shared } = await load("stores/shared");
const { file } = await load("stores/file");
const { here, loadAddon } = await load("engine/addon");
const { addon } = loadAddon(here());

const most = [];
const left = [];
for (const store of [shared(), file(folder)]) {
  const limits = defineLimits({}, { store });
  for (let i = 0; i < Number(calls); i++) {
    // A config with an object is not cached: a limit for each call.
    const config = { kind: "token bucket", rate: 10, period: 60_000, onStoreError: { local: 0.5 } };
    limits.limit("inline", { key: "ann", config });
  }
  most.push(addon.limits());
  // A collected limit's callback runs in a later turn; collect in each turn until none is left.
  for (let turn = 0; turn < 200 && addon.limits() > 20; turn++) {
    globalThis.gc();
    await setImmediate();
  }
  left.push(addon.limits());
}
process.stdout.write(JSON.stringify({ most, left }));
