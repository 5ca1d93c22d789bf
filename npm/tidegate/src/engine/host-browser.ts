// Browsers: the bytes are in the script, so that a decision needs no `await`. A content security policy needs
// 'wasm-unsafe-eval'.
import type { AlgebraExports, Exports } from "./exports.ts";
import { load as loadInline, loadAlgebra as loadAlgebraInline } from "./host-inline.ts";

function allowed<E>(load: () => E): E {
  try {
    return load();
  } catch (cause) {
    const remedy =
      "add 'wasm-unsafe-eval' to `script-src` in the page's content security policy, or import tidegate/pure";
    throw new Error(`WebAssembly is not allowed here: ${remedy} (${(cause as Error).message})`, { cause });
  }
}

export const load = (): Exports => allowed(loadInline);
export const loadAlgebra = (): AlgebraExports => allowed(loadAlgebraInline);
