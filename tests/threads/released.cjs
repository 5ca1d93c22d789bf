// Makes stores in memory and drops them; prints how many tables and limits the engine has made, and how many are left. Run with
// --expose-gc; argv: the package's folder, how the stores are made, how many.
const { join } = require("node:path");
const { setImmediate } = require("node:timers/promises");

const [root, how, stores] = process.argv.slice(2);
const load = (entry) => require(join(root, "dist", `${entry}.cjs`));

const wasm = { ...load("engine/host-node").load() };
const made = { tables: 0, limits: 0 };
const left = { tables: 0, limits: 0 };
for (const [what, name] of [
  ["tables", "table"],
  ["limits", "limit"],
]) {
  const { [`${name}_new`]: add, [`${name}_drop`]: drop } = wasm;
  wasm[`${name}_new`] = (...args) => {
    made[what]++;
    left[what]++;
    return add(...args);
  };
  wasm[`${name}_drop`] = (handle) => {
    left[what]--;
    drop(handle);
  };
}
load("engine/engine").loadBy(() => wasm);

function use() {
  // As development servers do that load a program and its dependencies again.
  if (how === "reloaded") {
    for (const file of Object.keys(require.cache)) if (file !== __filename) delete require.cache[file];
    module.children.length = 0;
  }
  const { defineLimits, memory } = load("index");
  const config = { kind: "token bucket", rate: 1, period: 1000 };
  const store = memory({ maxKeys: 1 });
  if (how === "inline") defineLimits({}, { store }).limit("api", { config });
  else defineLimits({ api: config }, { store }).limit("api");
}

async function run() {
  for (let i = 0; i < Number(stores); i++) use();
  for (let turn = 0; turn < 100 && left.tables > 0; turn++) {
    await setImmediate();
    globalThis.gc();
  }
  process.stdout.write(JSON.stringify({ made, left }));
}
void run();
