/** Lengths and bytes of keys, the same on hosts with and without an encoder. */
import { InputError } from "../limit/errors.ts";
import { KEY_EXPECTS, MAX_KEY_BYTES } from "./generated/bounds.ts";

/** Bytes of the code point that begins at `text[i]`. */
const width = (point: number): number => (point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4);

/** Length of {@link generalizedUtf8} in bytes. */
export function utf8Length(text: string): number {
  let length = 0;
  for (const character of text) length += width(character.codePointAt(0) as number);
  return length;
}

/** Returns the length of a key in bytes; throws if it is too long. */
export function checkLength(key: string, bytes: number): number {
  if (bytes > MAX_KEY_BYTES) throw new InputError("key", KEY_EXPECTS, key, `${bytes} bytes`);
  return bytes;
}

/**
 * A string's bytes in generalized UTF-8: UTF-8 in which a lone surrogate is encoded like any other code point. So no two
 * strings have the same bytes. Own code, because `TextEncoder` replaces lone surrogates, and older Hermes and QuickJS have
 * none.
 */
export function generalizedUtf8(text: string): Uint8Array {
  const bytes = new Uint8Array(utf8Length(text));
  let at = 0;
  for (const character of text) {
    const point = character.codePointAt(0) as number;
    const more = width(point) - 1;
    bytes[at++] = more === 0 ? point : ((0xf0 << (3 - more)) & 0xff) | (point >> (6 * more));
    for (let shift = 6 * (more - 1); shift >= 0; shift -= 6) bytes[at++] = 0x80 | ((point >> shift) & 0x3f);
  }
  return bytes;
}

/** These bytes in hexadecimal. */
export function hexOf(text: string): string {
  let digits = "";
  for (const byte of generalizedUtf8(text)) digits += (byte < 16 ? "0" : "") + byte.toString(16);
  return digits;
}
