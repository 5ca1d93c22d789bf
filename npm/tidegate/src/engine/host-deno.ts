// Deno: `import source`, which needs no permission.
import module from "./generated/wasm-source.js";
import { type InitOutput, initSync } from "./generated/tidegate.js";

export const load = (): InitOutput => initSync({ module });
