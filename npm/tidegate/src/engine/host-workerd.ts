// Cloudflare Workers: a static module, since nothing may be compiled there at run time.
import type { Exports } from "./exports.ts";
import { instantiate } from "./generated/glue.js";
import module from "./generated/small.wasm";

let exports: Exports | undefined;

export const load = (): Exports => {
  exports ??= instantiate(module);
  return exports;
};
/** The same module: a Worker would upload both. */
export const loadAlgebra: () => Exports = load;
