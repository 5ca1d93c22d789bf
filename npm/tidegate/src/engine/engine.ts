import { load } from "#engine-host";
import { InputError } from "../errors.ts";
import type { Exports } from "./exports.ts";
import { KEY_EXPECTS, MAX_KEY_BYTES } from "./generated/bounds.ts";
import { generalizedUtf8 } from "./utf8.ts";

/** Status bits of an answer: see `tidegate_table::wire`. */
export const OK = 1;
export const RESERVED = 2;
export const WRITES = 4;
export const REASON_SHIFT = 3;
export const ASK = 32;
export const INPUT_ERROR = 256;
/** Flags of a call: the operation, and whether tokens may be owed. */
export const OPS = { take: 0, check: 1, give: 2, charge: 3 } as const;
export const RESERVE = 4;
/** Lengths that stand for: no key; the limit and key of the last call. */
export const NO_KEY = 0xffff_ffff;
export const SAME_KEY = 0xffff_fffe;
/** The number that stands for: no table, no limit. */
export const NONE = 0xffff_ffff;

/** Keys up to here are copied character by character, which is faster than the encoder's fixed cost. */
const SHORT = 24;

/** Where the host cannot tell (before ES2024), the slow path below is right for every string. */
const isWellFormed = (text: string & { isWellFormed?: () => boolean }): boolean => text.isWellFormed?.() ?? false;

/** The WebAssembly module and the views of its memory. There is one in a thread. */
export class Engine {
  readonly wasm: Exports;
  /** The eight numbers of an answer. Read through {@link Engine.fresh} after a call that may have grown the memory. */
  numbers!: Float64Array;
  #words!: Uint32Array;
  #key!: Uint8Array;
  readonly #keyAt: number;
  readonly #numbersAt: number;
  readonly #encoder: TextEncoder = new TextEncoder();
  /** Counts what has overwritten the key, so that nobody takes another's for the last. */
  writes = 0;

  constructor(wasm: Exports) {
    this.wasm = wasm;
    this.#keyAt = wasm.key_at();
    this.#numbersAt = wasm.numbers_at();
    this.refresh();
  }

  /** Looks at the memory anew; its views end when it grows. */
  refresh(): void {
    const { buffer } = this.wasm.memory;
    this.#words = new Uint32Array(buffer, this.#keyAt, MAX_KEY_BYTES / 4 + 1);
    this.#key = new Uint8Array(buffer, this.#keyAt, MAX_KEY_BYTES);
    this.numbers = new Float64Array(buffer, this.#numbersAt, 8);
  }

  /** A view of `count` doubles at `at`, as the memory is now. */
  doubles(at: number, count: number): Float64Array {
    return new Float64Array(this.wasm.memory.buffer, at, count);
  }

  /** A view of `length` bytes at `at`, as the memory is now. */
  bytes(at: number, length: number): Uint8Array {
    return new Uint8Array(this.wasm.memory.buffer, at, length);
  }

  /** Writes raw bytes where a key goes. */
  writeBytes(bytes: Uint8Array): void {
    this.writes++;
    if (this.#key.length === 0) this.refresh();
    this.#key.set(bytes);
  }

  /** Writes a key where the engine reads it, and returns its length in bytes. */
  writeKey(key: string | undefined): number {
    this.writes++;
    if (key === undefined) return NO_KEY;
    let words = this.#words;
    if (words.length === 0) {
      this.refresh();
      words = this.#words;
    }
    const { length } = key;
    if (length > SHORT) return this.#encode(key);
    let seen = 0;
    let i = 0;
    let word = 0;
    for (; i + 4 <= length; i += 4) {
      const a = key.charCodeAt(i);
      const b = key.charCodeAt(i + 1);
      const c = key.charCodeAt(i + 2);
      const d = key.charCodeAt(i + 3);
      seen |= a | b | c | d;
      words[word++] = a | (b << 8) | (c << 16) | (d << 24);
    }
    if (i < length) {
      let rest = 0;
      for (let shift = 0; i < length; i++, shift += 8) {
        const character = key.charCodeAt(i);
        seen |= character;
        rest |= character << shift;
      }
      words[word] = rest;
    }
    return seen < 128 ? length : this.#encode(key);
  }

  #encode(key: string): number {
    const { read, written } = this.#encoder.encodeInto(key, this.#key);
    if (read === key.length && (written === read || isWellFormed(key))) return written;
    // A lone surrogate, or too long; or both.
    const bytes = key.length > MAX_KEY_BYTES ? undefined : generalizedUtf8(key);
    if (bytes === undefined || bytes.length > MAX_KEY_BYTES) {
      const length = bytes?.length ?? new TextEncoder().encode(key).length;
      throw new InputError("key", KEY_EXPECTS, key, `${length} bytes`);
    }
    this.#key.set(bytes);
    return bytes.length;
  }
}

let loaded: Engine | undefined;
/** Returns the module's exports; where a memory that grows leaves old views as they were, `grown` is called. */
type Load = (grown: () => void) => Exports;
let loading: Load = load;

/** The engine of this thread, loaded when it is first asked for. */
export function engine(): Engine {
  loaded ??= new Engine(loading(() => loaded?.refresh()));
  return loaded;
}

/** Has the engine loaded in another way than the host's; nothing, where it is loaded already. */
export function loadBy(other: Load): void {
  loading = other;
}
