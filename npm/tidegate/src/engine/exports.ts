import type { InitOutput } from "./generated/engine.js";

/**
 * The raw exports of the module, as wasm-bindgen types them: the functions of crates/wasm (`generated/engine.d.ts` names
 * their arguments) and the memory. A `u32` above 2^31 - 1, such as an address, is returned negative.
 */
export type Exports = Omit<InitOutput, `__wbindgen_${string}`>;
