// The store suite on Deno KV, with a prefix per test.
import { denoKv } from "tidegate/deno-kv";
import vectors from "./few.js";
import { report } from "./report.js";

const kv = await Deno.openKv(Deno.args[0]);
const prefixes = new WeakMap();
let stores = 0;

/** An identity with lone surrogates, which UTF-8 cannot keep apart, has a key that begins with a quote. */
async function look(prefix, id) {
  if (id.isWellFormed()) return (await kv.get([prefix, id])).value;
  const odd = await Array.fromAsync(kv.list({ start: [prefix, '"'], end: [prefix, "#"] }));
  if (odd.length > 1) throw new Error(`${odd.length} entries begin with a quote`);
  return odd[0]?.value ?? null;
}

const results = await report({
  vectors,
  shardsApart: "each shard has a row of its own",
  create() {
    const prefix = `store ${stores++}`;
    const store = denoKv(kv, { prefix });
    prefixes.set(store, prefix);
    return store;
  },
  stored: (store) => async (id) => {
    const value = await look(prefixes.get(store), id);
    if (value === null) return null;
    const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
    if (view.byteLength !== 16) throw new Error(`${view.byteLength} bytes are stored under ${id}`);
    return { value: view.getFloat64(0, true), ts: view.getFloat64(8, true) };
  },
});
console.log(JSON.stringify(results));
kv.close();
