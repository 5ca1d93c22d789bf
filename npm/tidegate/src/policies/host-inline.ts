// Hosts that may compile at run time: the bytes are in the script.
import { WASM_TEXT } from "../engine/generated/policy_bg-inline.ts";
import { type InitOutput, initSync } from "../engine/generated/policy.js";
import { bytesOf } from "../engine/wasm-text.ts";

const REMEDY =
  "in a page, add 'wasm-unsafe-eval' to `script-src` in its content security policy; elsewhere, and with tidegate/pure, " +
  "which has no such check, use policies on a server";

export const load = (): InitOutput => {
  try {
    return initSync({ module: bytesOf(WASM_TEXT) });
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new Error(`WebAssembly checks policy documents, and is not allowed here: ${REMEDY} (${reason})`, { cause });
  }
};
