// Any host that can run WebAssembly and nothing else: the bytes are in the script.
import type { AlgebraExports, Exports } from "./exports.ts";
import { WASM_TEXT as ALGEBRA } from "./generated/algebra-inline.ts";
import { instantiate } from "./generated/glue.js";
import { WASM_TEXT } from "./generated/small-inline.ts";
import { bytesOf } from "./text.ts";

export const load = (): Exports => instantiate(bytesOf(WASM_TEXT));
export const loadAlgebra = (): AlgebraExports => instantiate(bytesOf(ALGEBRA));
