// Makes stores in memory and drops them; prints the number of the next table before and after, and how often a property of
// the engine was read in between. Run with --expose-gc; argv: the package's folder, the number of stores.
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [root, stores] = process.argv.slice(2);
const load = (entry) => import(pathToFileURL(join(root, "dist", `${entry}.js`)).href);
const { defineLimits, memory } = await load("index");
const { engine } = await load("engine/engine");
const { wasm } = engine();

function next() {
  const table = wasm.table_new(1);
  wasm.table_drop(table);
  return table;
}

for (let i = 0; i < Number(stores); i++) {
  defineLimits({ api: { kind: "token bucket", rate: 1, period: 1000 } }, { store: memory({ maxKeys: 1 }) }).limit(
    "api",
  );
}
const most = next();
let reads = 0;
const get = () => {
  reads++;
  return wasm;
};
Object.defineProperty(engine(), "wasm", { get });
for (let turn = 0; turn < 200 && next() > 0; turn++) {
  globalThis.gc();
  await setImmediate();
}
process.stdout.write(JSON.stringify({ most, left: next(), reads }));
