// Any host that can run WebAssembly and nothing else: the bytes are in the script.
import type { AlgebraExports, DistributedExports, TableExports } from "./exports.ts";
import { WASM_TEXT as ALGEBRA } from "./generated/algebra-inline.ts";
import { WASM_TEXT as DISTRIBUTED } from "./generated/distributed-inline.ts";
import { instantiate } from "./generated/glue.js";
import { WASM_TEXT as TABLE } from "./generated/page-inline.ts";
import { bytesOf } from "./wasm-text.ts";

export const load = (): TableExports => instantiate(bytesOf(TABLE));
export const loadAlgebra = (): AlgebraExports => instantiate(bytesOf(ALGEBRA));
export const loadDistributed = (): DistributedExports => instantiate(bytesOf(DISTRIBUTED));
