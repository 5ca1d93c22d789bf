// Hosts that may compile at run time: the bytes are in the script.
import { WASM_TEXT } from "../engine/generated/policy_bg-inline.ts";
import { type InitOutput, initSync } from "../engine/generated/policy.js";
import { bytesOf } from "../engine/text.ts";

export const load = (): InitOutput => initSync({ module: bytesOf(WASM_TEXT) });
