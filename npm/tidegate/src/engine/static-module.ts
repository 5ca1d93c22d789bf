/** Loads a module that the host has compiled. */
import type { Exports } from "./exports.ts";

/** The engine of a module that the host has compiled, as Cloudflare Workers compile nothing at run time. */
export function loaderOf(module: WebAssembly.Module): () => Exports {
  let exports: Exports | undefined;
  return () => {
    exports ??= new WebAssembly.Instance(module).exports as Exports;
    return exports;
  };
}
