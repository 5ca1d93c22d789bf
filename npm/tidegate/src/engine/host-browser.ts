// Browsers: the bytes are in the script, so that a decision needs no `await`. A content security policy needs
// 'wasm-unsafe-eval'.
import type { Exports } from "./exports.ts";
import { load as loadInline } from "./host-inline.ts";

export const load = (): Exports => {
  try {
    return loadInline();
  } catch (cause) {
    const remedy =
      "add 'wasm-unsafe-eval' to `script-src` in the page's content security policy, or import tidegate/pure";
    throw new Error(`WebAssembly is not allowed here: ${remedy} (${(cause as Error).message})`, { cause });
  }
};
