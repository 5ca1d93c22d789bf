/** What a store without expiry keeps: a state's 16 bytes, then the epoch ms (a double) from which it may be dropped. */
import { isBytes } from "../limit/realms.ts";
import { NotAState, readState, STATE_BYTES, writeState } from "../limit/codec.ts";
import type { State } from "../limit/decision.ts";
import { generalizedUtf8 } from "../engine/utf8.ts";

const RECORD_BYTES = STATE_BYTES + 8;

export function writeRecord(state: State, dropAt: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(RECORD_BYTES);
  const view = new DataView(bytes.buffer);
  writeState(view, state);
  view.setFloat64(STATE_BYTES, dropAt, true);
  return bytes;
}

/** Throws a `NotAState` if the bytes are no record. */
export function readRecord(bytes: unknown): { state: State; dropAt: number } {
  if (!isBytes(bytes) || bytes.length !== RECORD_BYTES) {
    const got = isBytes(bytes) ? `${bytes.length} bytes` : typeof bytes;
    throw new NotAState(`what is stored must be a state and until when it is kept, ${RECORD_BYTES} bytes; got ${got}`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return { state: readState(view), dropAt: view.getFloat64(STATE_BYTES, true) };
}

/** The ms from which it may be dropped: never if it is not a record, so that the next call reports it. */
export function dropAtOf(bytes: unknown): number {
  try {
    return readRecord(bytes).dropAt;
  } catch {
    return Infinity;
  }
}

const LONE_SURROGATE = /[\ud800-\udfff]/u;

/**
 * An identity as a string that stays distinct in UTF-8. Lone surrogates would all become one character: an identity with
 * any is a quote, with which no identity begins, and its bytes in base64.
 */
export const wellFormed = (id: string): string => (LONE_SURROGATE.test(id) ? quoted(id) : id);

/** The quote and the base64. */
export const quoted = (id: string): string => `"${btoa(String.fromCharCode(...generalizedUtf8(id)))}`;
