// Any host that can run WebAssembly and nothing else: the bytes are in the script.
import type { Exports } from "./exports.ts";
import { initSync } from "./generated/engine.js";
import { WASM_TEXT } from "./generated/inline.ts";

/** The value of one of the 91 characters: printable ASCII but for the space, `!`, `"` and `\`. */
const digit = (at: number): number => {
  const code = WASM_TEXT.charCodeAt(at);
  return code > 92 ? code - 36 : code - 35;
};

/** Bytes below 89 are a character each, others are two: so gzip finds as much in the text as in the bytes, unlike in base64. */
function bytes(): Uint8Array<ArrayBuffer> {
  const found: number[] = [];
  for (let at = 0; at < WASM_TEXT.length; ) {
    const first = digit(at++);
    found.push(first < 89 ? first : 89 + (first - 89) * 91 + digit(at++));
  }
  return Uint8Array.from(found);
}

export const load = (): Exports => {
  if (typeof WebAssembly === "undefined") throw new Error("there is no WebAssembly here: import tidegate/pure instead");
  return initSync({ module: bytes() });
};
