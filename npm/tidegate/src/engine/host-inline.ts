// Any host that can run WebAssembly and nothing else: the bytes are in the script.
import { WASM_BASE64 } from "./generated/inline.ts";
import { type InitOutput, initSync } from "./generated/tidegate.js";

export const load = (): InitOutput =>
  initSync({ module: Uint8Array.from(atob(WASM_BASE64), (character) => character.charCodeAt(0)) });
