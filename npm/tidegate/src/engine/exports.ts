/** The types of what the modules export. */
import type { InitOutput } from "./generated/engine.js";

/**
 * The raw exports of the module, as wasm-bindgen types them: the functions of crates/wasm (`generated/engine.d.ts` names
 * their arguments) and the memory. A `u32` above 2^31 - 1, such as an address, is returned negative.
 */
export type Exports = Omit<InitOutput, `__wbindgen_${string}`>;

/** What a module of the algebra exports besides its functions. */
export type Memory = Pick<Exports, "memory" | "numbers_at">;
/** Modules with a part of it: npm/scripts/wasm.mjs lists the same. The algebra, without tables and keys. */
export type AlgebraExports = Memory & Pick<Exports, "evaluate">;
/** Leases and shards, without tables and keys. */
export type DistributedExports = Memory & Pick<Exports, "lease_spend" | "pool_at" | "pool_decide">;
/** The table, without leases and shards. */
export type TableExports = Omit<Exports, "lease_spend" | "pool_at" | "pool_decide">;
