import type * as functions from "./generated/engine.js";

/**
 * The raw exports of the module: the functions of crates/wasm, as wasm-bindgen types and documents them, and the memory.
 * They return what WebAssembly returns: a `u32` above 2^31 - 1, such as an address, is negative.
 */
export type Exports = Omit<typeof functions, "default" | "initSync"> & Pick<functions.InitOutput, "memory">;
