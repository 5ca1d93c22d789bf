/**
 * Where a state stands: `prefix:identity`, in characters that every client and the protocol carry as they are. All
 * others are written as the bytes of their (generalized) UTF-8, `%` and two digits each: spaces, which end a key, and
 * `$`, which one client takes for a pattern. What is too long is told by its hash, after a `#`, with which no identity
 * begins.
 */
import { generalizedUtf8 } from "../../engine/utf8.ts";
import { sha256 } from "../../http/sha256.ts";

/** The server takes 250; the rest is left to a namespace of the client's own. */
const MOST = 200;
const PLAIN = /[\w.:/@+=,~-]/;

export function keyOf(prefix: string, id: string): string {
  const bytes = generalizedUtf8(id);
  let place = `${prefix}:`;
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    place += PLAIN.test(character) ? character : `%${byte.toString(16).padStart(2, "0")}`;
    if (place.length > MOST) return `${prefix}:#${sha256(bytes)}`;
  }
  return place;
}
