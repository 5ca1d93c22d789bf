// Hosts that may compile at run time: the bytes are in the script.
import { WASM_BASE64 } from "../engine/generated/policy_bg-inline.ts";
import { type InitOutput, initSync } from "../engine/generated/policy.js";

export const load = (): InitOutput =>
  initSync({ module: Uint8Array.from(atob(WASM_BASE64), (character) => character.charCodeAt(0)) });
