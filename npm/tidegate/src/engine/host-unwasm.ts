// Cloudflare Workers of a server that Nitro builds, as for Nuxt and SolidStart. Its plugin unwasm makes a module only of what is
// imported with `?module`, which other builds of Workers do not always resolve.
import type { Exports } from "./exports.ts";
import module from "./generated/small.wasm?module";
import { loaderOf } from "./static-module.ts";

export const load: () => Exports = loaderOf(module);
/** The same module: a Worker would upload all. */
export { load as loadAlgebra, load as loadDistributed };
