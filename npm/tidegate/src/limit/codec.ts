/** A state as bytes and as text, the same on every host: see `codec.rs` in `crates/core`. */
import { isBytes } from "./realms.ts";
import { InputError, show } from "./errors.ts";
import type { State } from "./decision.ts";
import { checkState } from "./evaluator.ts";

/** Bytes of an encoded state. */
export const STATE_BYTES = 16;

const WHAT = "two finite little-endian doubles in 16 bytes, value and ts";

/** The value that a store holds under a key is not a state: an error of this key, not of the store. */
export class NotAState extends TypeError {}

function finite(value: number, ts: number, got: string): State {
  if (Number.isFinite(value) && Number.isFinite(ts)) return { value, ts };
  throw new NotAState(`a state must be ${WHAT}; got ${got}`);
}

/** Writes a state at the beginning of these bytes. */
export function writeState(view: DataView, { value, ts }: State): void {
  view.setFloat64(0, value, true);
  view.setFloat64(8, ts, true);
}

/** The state at the beginning of these bytes. */
export function readState(view: DataView): State {
  const [value, ts] = [view.getFloat64(0, true), view.getFloat64(8, true)];
  return finite(value, ts, `${value} and ${ts}`);
}

/** Bytes on an `ArrayBuffer`, in a type that also exists before TypeScript 5.7. */
type Bytes = ReturnType<Uint8Array["slice"]>;

/**
 * A state as 16 bytes: `value`, then `ts`, little-endian doubles.
 *
 * ```ts
 * encode({ value: 2.5, ts: 1000 }).length; // 16
 * decode(encode({ value: 2.5, ts: 1000 })); // { value: 2.5, ts: 1000 }
 * ```
 *
 * Throws an `InputError` if one of the numbers is not finite.
 */
export function encode(state: State): Bytes {
  const bytes = new Uint8Array(STATE_BYTES);
  writeState(new DataView(bytes.buffer), checkState(state));
  return bytes;
}

/**
 * Reads what {@link encode} wrote, to the bit. Throws a `TypeError` if the bytes are not a state: they are never taken for a
 * fresh key. Throws an `InputError` if the argument is not bytes.
 */
export function decode(bytes: Uint8Array): State {
  if (!isBytes(bytes)) throw new InputError("bytes", "a Uint8Array", bytes);
  if (bytes.length !== STATE_BYTES) throw new NotAState(`a state must be ${WHAT}; got ${bytes.length} bytes`);
  return readState(new DataView(bytes.buffer, bytes.byteOffset));
}

/** The shortest decimal form that reads back to the same bits; `String` drops the sign of -0. */
const shortest = (number: number): string => (Object.is(number, -0) ? "-0" : String(number));

/**
 * A number as JavaScript, JSON and SQL write it. `Number` would also accept spaces, hexadecimal and the empty string.
 */
const DECIMAL = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/;

/**
 * A state as text, for hosts that store no bytes: `value`, a space, `ts`. Each is in the shortest decimal form that reads
 * back to the same bits.
 *
 * ```ts
 * encodeText({ value: 2.5, ts: 1000 }); // "2.5 1000"
 * ```
 *
 * Throws an `InputError` if one of the numbers is not finite.
 */
export function encodeText(state: State): string {
  const { value, ts } = checkState(state);
  return `${shortest(value)} ${shortest(ts)}`;
}

/**
 * Reads what {@link encodeText} wrote, to the bit. Throws a `TypeError` if the text is not a state, an `InputError` if it
 * is not a string.
 */
export function decodeText(text: string): State {
  if (typeof text !== "string") throw new InputError("text", "a string", text);
  const parts = text.split(" ");
  const [value, ts] = parts;
  if (parts.length !== 2 || !DECIMAL.test(value as string) || !DECIMAL.test(ts as string)) {
    throw new NotAState(
      `a state as text must be two decimal numbers, value and ts, with a space between; got ${show(text)}`,
    );
  }
  return finite(Number(value), Number(ts), show(text));
}
