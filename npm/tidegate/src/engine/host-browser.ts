// Browsers: the bytes are in the script, so that a decision needs no `await`. A content security policy needs
// 'wasm-unsafe-eval'.
import type { AlgebraExports, DistributedExports, TableExports } from "./exports.ts";
import * as inline from "./host-inline.ts";

function allowed<E>(load: () => E): E {
  try {
    return load();
  } catch (cause) {
    // Not a matter of a policy: iOS in Lockdown Mode, and engines that have none.
    if (typeof WebAssembly === "undefined") throw cause;
    const remedy =
      "add 'wasm-unsafe-eval' to `script-src` in the page's content security policy, or import tidegate/pure";
    throw new Error(`WebAssembly is not allowed here: ${remedy} (${(cause as Error).message})`, { cause });
  }
}

export const load = (): TableExports => allowed(inline.load);
export const loadAlgebra = (): AlgebraExports => allowed(inline.loadAlgebra);
export const loadDistributed = (): DistributedExports => allowed(inline.loadDistributed);
