/**
 * A string's bytes in generalized UTF-8: UTF-8, in which a lone surrogate is encoded like any other code point (three
 * bytes), so that no two strings have the same bytes.
 */
export function generalizedUtf8(text: string): Uint8Array {
  const parts = text.split(/(\p{Surrogate})/u);
  const encoder = new TextEncoder();
  const encoded = parts.map((part) => {
    const unit = part.length === 1 ? part.charCodeAt(0) : 0;
    if (unit < 0xd800 || unit > 0xdfff) return encoder.encode(part);
    return Uint8Array.of(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f));
  });
  const bytes = new Uint8Array(encoded.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of encoded) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
