// Deno: `import source`, which needs no permission.
import module from "./generated/wasm-source.js";
import { type Exports, instantiate } from "./exports.ts";

export const load = (): Exports => instantiate(module);
