/**
 * The bytes of a module's text, as npm/scripts/wasm.mjs writes it. Bytes below 89 are a character each, others are two: so
 * gzip finds as much in the text as in the bytes, unlike in base64.
 */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  /** The value of one of the 91 characters: printable ASCII but for the space, `!`, `"` and `\`. */
  const digit = (at: number): number => {
    const code = text.charCodeAt(at);
    return code > 92 ? code - 36 : code - 35;
  };
  const found: number[] = [];
  for (let at = 0; at < text.length; ) {
    const first = digit(at++);
    found.push(first < 89 ? first : 89 + (first - 89) * 91 + digit(at++));
  }
  return Uint8Array.from(found);
}
