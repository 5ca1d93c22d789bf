/**
 * A limit's identity as PostgreSQL reads `bytea`: its bytes in generalized UTF-8, so that no two strings meet. What is
 * plain ASCII is written as it is, the rest in hexadecimal.
 */
import { generalizedUtf8 } from "../../engine/utf8.ts";

/** ASCII that means itself both in a bytea and between the quotes of an array. */
const PLAIN = /^[ !#-[\]-~]*$/;
/** How a name begins keeps it from reading as hexadecimal. */
const HEX = "\\x";

function hex(text: string): string {
  let digits = "";
  for (const byte of generalizedUtf8(text)) digits += (byte < 16 ? "0" : "") + byte.toString(16);
  return digits;
}

/** The identity as a `bytea`. A name stands before every key: so nothing plain begins with a backslash. */
export function byteaOf(identity: string): string {
  return identity === "" || PLAIN.test(identity) ? identity : HEX + hex(identity);
}

/** Identities as a `bytea[]`. */
export function byteasOf(identities: readonly string[]): string {
  let text = "{";
  for (const identity of identities) {
    if (text.length > 1) text += ",";
    text += PLAIN.test(identity) ? `"${identity}"` : `"\\${HEX}${hex(identity)}"`;
  }
  return `${text}}`;
}

/** Sorts as PostgreSQL sorts `bytea`. All of ASCII compares the same by characters; what is not sorts by its bytes. */
export function inOrder(a: string, b: string): number {
  if (PLAIN.test(a) && PLAIN.test(b)) return a < b ? -1 : a > b ? 1 : 0;
  const x = hex(a);
  const y = hex(b);
  return x < y ? -1 : x > y ? 1 : 0;
}
