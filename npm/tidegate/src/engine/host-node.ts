// Node.js, Bun and Deno: the bytes are in the script, so a bundler cannot lose them. `Buffer` decodes them in one native call.
// A page has none, and may load this file too: Metro takes it for a `require` in an app for the web.
// As one object: webpack follows an imported `createRequire`, and would bundle the package twice.
import module from "node:module";
import { checkByteOrder } from "./byte-order.ts";
import type { Exports } from "./exports.ts";
import { instantiate } from "./generated/glue.js";
import { WASM_BASE64 } from "./generated/speed-inline.ts";

// Not `exports`: tsup turns this file into CommonJS without renaming, if that name is taken.
let loaded: Exports | undefined;

const bytes = (): Uint8Array<ArrayBuffer> =>
  typeof Buffer === "undefined"
    ? Uint8Array.from(atob(WASM_BASE64), (byte) => byte.charCodeAt(0))
    : Buffer.from(WASM_BASE64, "base64");

export const load = (): Exports => {
  checkByteOrder();
  try {
    loaded ??= instantiate(bytes());
    return loaded;
  } catch (cause) {
    if (typeof WebAssembly === "undefined") throw cause;
    // Under `ulimit -v`, as of shared hosts: older Node.js reserves gigabytes of addresses for a memory.
    // A server that was built for Node.js may run on Workers, as OpenNext does with Next.js.
    const [reason, remedy] =
      cause instanceof RangeError
        ? ["there is no memory for WebAssembly", "start Node.js with --disable-wasm-trap-handler"]
        : ["WebAssembly is not allowed here", "create the node:vm context with codeGeneration: { wasm: true }"];
    const message = `${reason}: import tidegate/pure first, or ${remedy} (${(cause as Error).message})`;
    throw new Error(message, { cause });
  }
};
/** The same module: it is loaded anyway, and one is compiled sooner than two. */
export { load as loadAlgebra, load as loadDistributed };

/**
 * Not called. Node.js loads CommonJS files. Nitro (Nuxt, SolidStart) copies beside a server only what the ES module that it
 * resolved leads to: here it finds those files. Bundlers leave the function out.
 */
export function commonJs(): unknown {
  const require = module.createRequire(import.meta.url);
  // Used twice, or the build writes module.createRequire(…)(…), which the tracer does not follow.
  return [require("../index.cjs"), require];
}
