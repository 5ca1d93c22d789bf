// Cloudflare Workers: a static module, since nothing may be compiled there at run time. `?module` says so to bundlers: without it
// Nitro (Nuxt, SolidStart) passes a function that loads it later.
import type { Exports } from "./exports.ts";
import module from "./generated/small.wasm?module";

let exports: Exports | undefined;

export const load = (): Exports => {
  exports ??= new WebAssembly.Instance(module).exports as unknown as Exports;
  return exports;
};
/** The same module: a Worker would upload all. */
export { load as loadAlgebra, load as loadDistributed };
