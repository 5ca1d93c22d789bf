/** What a store with no expiry of its own keeps: a state's 16 bytes, then the ms (a double) from which it may be dropped. */
import { decode, encode, NotAState, STATE_BYTES } from "../limit/codec.ts";
import type { State } from "../limit/decision.ts";
import { generalizedUtf8 } from "../engine/utf8.ts";

const RECORD_BYTES = STATE_BYTES + 8;

export function writeRecord(state: State, dropAt: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(RECORD_BYTES);
  bytes.set(encode(state));
  new DataView(bytes.buffer).setFloat64(STATE_BYTES, dropAt, true);
  return bytes;
}

/** Throws a `TypeError` where the bytes are no record. */
export function readRecord(bytes: Uint8Array): State & { dropAt: number } {
  if (!(bytes instanceof Uint8Array) || bytes.length !== RECORD_BYTES) {
    const got = bytes instanceof Uint8Array ? `${bytes.length} bytes` : typeof bytes;
    throw new NotAState(`what is stored must be a state and until when it is kept, ${RECORD_BYTES} bytes; got ${got}`);
  }
  const dropAt = new DataView(bytes.buffer, bytes.byteOffset).getFloat64(STATE_BYTES, true);
  return { ...decode(bytes.subarray(0, STATE_BYTES)), dropAt };
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * An identity as a string that a host can encode as UTF-8 and still tell from every other: itself, unless there are lone
 * surrogates in it, which all become the same character. Then a quote, with which no identity begins, and its bytes in
 * base64.
 */
export function wellFormed(id: string): string {
  if (!LONE_SURROGATE.test(id)) return id;
  return `"${btoa(String.fromCharCode(...generalizedUtf8(id)))}`;
}
