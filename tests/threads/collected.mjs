// Uses a store in realms of its own, as Jest does for each file of tests, and drops them; prints how many realms are kept. Run
// with --expose-gc; argv: the package's folder, the entry of the store, its function, its arguments.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { createContext, Script } from "node:vm";

const [root, entry, name, ...args] = process.argv.slice(2);

/** Loads CommonJS files in a context; modules of Node.js and the addon are this realm's. */
function loader(context) {
  const modules = new Map();
  return function load(file) {
    const loaded = modules.get(file);
    if (loaded !== undefined) return loaded.exports;
    const module = { exports: {} };
    modules.set(file, module);
    const resolve = createRequire(file);
    const require = (id) => (id.startsWith(".") ? load(join(dirname(file), id)) : resolve(id));
    const text = `(function (exports, require, module, __filename, __dirname) {${readFileSync(file, "utf8")}\n})`;
    const run = new Script(text, { filename: file }).runInContext(context);
    run(module.exports, require, module, file, dirname(file));
    return module.exports;
  };
}

function use() {
  const context = createContext({ Buffer, TextEncoder, crypto, performance, process, setTimeout, clearTimeout });
  const load = loader(context);
  const { defineLimits } = load(join(root, "dist/index.cjs"));
  const store = load(join(root, `dist/${entry}.cjs`))[name](...args);
  const { ok } = defineLimits({ api: { kind: "token bucket", rate: 100, period: 60_000 } }, { store }).limit("api");
  if (store.name !== name || !ok) throw new Error(`${store.name} denied`);
  store.close?.();
  return new WeakRef(context);
}

const realms = Array.from({ length: 5 }, use);
const kept = () => realms.filter((realm) => realm.deref() !== undefined).length;
for (let turn = 0; turn < 20 && kept() > 0; turn++) {
  // What was read of a WeakRef is kept until the turn ends.
  await setImmediate();
  globalThis.gc();
}
process.stdout.write(String(kept()));
