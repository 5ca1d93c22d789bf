// Written here, since pages load it: these lines are half the size of structured-headers, which the tests compare them with.
import { InputError } from "../limit/errors.ts";

/** The greatest Integer of RFC 9651: 15 digits. */
const MAX_INTEGER = 999_999_999_999_999;

/** A number as a non-negative Integer, held in range. */
export const integer = (number: number): number => Math.min(Math.max(Math.trunc(number), 0), MAX_INTEGER);

/** The name of a limit as a String: printable ASCII in quotes. Any other name is the caller's mistake. */
export function quotedName(name: unknown): string {
  if (typeof name !== "string" || !/^[ -~]+$/.test(name)) {
    throw new InputError("name", "a string of printable ASCII characters", name);
  }
  return `"${name.replace(/["\\]/g, "\\$&")}"`;
}

/** A Byte Sequence: base64 between colons. */
export const byteSequence = (bytes: Uint8Array): string =>
  `:${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}:`;
