import type { InitOutput } from "./generated/engine.js";

/**
 * The raw exports of the module, as wasm-bindgen types them: the functions of crates/wasm (`generated/engine.d.ts` names
 * their arguments) and the memory. A `u32` above 2^31 - 1, such as an address, is returned negative.
 */
export type Exports = Omit<InitOutput, `__wbindgen_${string}`>;

/** What the module without tables and keys exports: npm/scripts/wasm.mjs lists the same. */
export type AlgebraExports = Pick<Exports, "memory" | "numbers_at" | "evaluate">;
