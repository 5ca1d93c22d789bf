// Deno: `import source`, which needs no permission.
import type { Exports } from "./exports.ts";
import { initSync } from "./generated/engine.js";
import module from "./generated/wasm-source.js";

export const load = (): Exports => initSync({ module });
