// Cloudflare Workers: a static module, since nothing may be compiled there at run time.
import type { Exports } from "./exports.ts";
import module from "./generated/small.wasm";
import { loaderOf } from "./static-module.ts";

export const load: () => Exports = loaderOf(module);
/** The same module: a Worker would upload all. */
export { load as loadAlgebra, load as loadDistributed };
