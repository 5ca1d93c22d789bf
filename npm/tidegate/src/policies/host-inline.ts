// Any host that may compile at run time: the bytes are in the script. It is loaded once, where a document is read.
import { WASM_BASE64 } from "../engine/generated/policy-inline.ts";
import { type InitOutput, initSync } from "../engine/generated/policy.js";

export const load = (): InitOutput =>
  initSync({ module: Uint8Array.from(atob(WASM_BASE64), (character) => character.charCodeAt(0)) });
