/** The module with tables of keys, which memory uses. `#engine-host` names the file host-*.ts that loads its bytes. */
import { load } from "#engine-host";
import { Algebra, chosen, type Load, oncePerThread } from "./algebra.ts";
import type { Numbers } from "./answer.ts";
import type { Exports, TableExports } from "./exports.ts";
import { MAX_KEY_BYTES } from "./generated/bounds.ts";
import { NO_KEY, SHORT_KEY_BYTES } from "./generated/wire.ts";
import { checkLength, generalizedUtf8, utf8Length } from "./utf8.ts";

/** Before ES2024 a host has no such method. The slow path below is right for every string. */
const isWellFormed = (text: string & { isWellFormed?: () => boolean }): boolean => text.isWellFormed?.() ?? false;

/** Views of a module's memory: the key in words and in bytes. */
interface Views {
  readonly numbers: Numbers;
  readonly words: Uint32Array;
  readonly key: Uint8Array;
}

/** The module with tables of keys, besides the algebra. There is one in a thread. */
export class Engine extends Algebra<TableExports> {
  #views: Views;
  readonly #keyAt: number;
  /** Absent in older Hermes and QuickJS, and in Jest's jsdom. */
  readonly #encoder: TextEncoder | undefined = typeof TextEncoder === "undefined" ? undefined : new TextEncoder();
  /** Counts what has overwritten the key, so that no store takes another store's key for its last. */
  writes = 0;

  constructor(load: Load<TableExports>) {
    super(load);
    this.#keyAt = this.wasm.key_at();
    this.#views = this.#view();
  }

  #view(): Views {
    const { numbers, wasm } = this;
    const { buffer } = wasm.memory;
    return {
      numbers,
      words: new Uint32Array(buffer, this.#keyAt, MAX_KEY_BYTES / 4 + 1),
      key: new Uint8Array(buffer, this.#keyAt, MAX_KEY_BYTES),
    };
  }

  /** The views, which are valid until the next call, as {@link numbers} is. */
  #current(): Views {
    if (this.#views.numbers !== this.numbers) this.#views = this.#view();
    return this.#views;
  }

  /** A view of `length` bytes at an address, which is valid until the next call. */
  bytes(at: number, length: number): Uint8Array {
    return new Uint8Array(this.wasm.memory.buffer, at >>> 0, length);
  }

  /** Writes raw bytes where a key goes. */
  writeBytes(bytes: Uint8Array): void {
    this.writes++;
    this.#current().key.set(bytes);
  }

  /** Writes a key where the engine reads it, and returns its length in bytes. */
  writeKey(key: string | undefined): number {
    this.writes++;
    if (key === undefined) return NO_KEY;
    const { words } = this.#current();
    const { length } = key;
    // A short key is written character by character: faster than the fixed cost of the encoder.
    if (length > SHORT_KEY_BYTES) return this.#encode(key);
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
    const view = this.#current().key;
    if (this.#encoder !== undefined) {
      const { read, written } = this.#encoder.encodeInto(key, view);
      if (read === key.length && (written === read || isWellFormed(key))) return written;
    }
    // Without an encoder; or a lone surrogate, or too long.
    const bytes = key.length > MAX_KEY_BYTES ? undefined : generalizedUtf8(key);
    const length = checkLength(key, bytes?.length ?? utf8Length(key));
    view.set(bytes as Uint8Array);
    return length;
  }
}

let loaded: Engine | undefined;

/** The engine of this thread, loaded by the first call. */
export function engine(): Engine {
  loaded ??= oncePerThread("engine", () => new Engine(chosen("host", load)));
  return loaded;
}

/** Replaces the host's way to load the engine, for all copies of the package. No effect after the engine was loaded. */
export function loadBy(other: Load<Exports>): void {
  oncePerThread("host", () => other);
  oncePerThread("algebra by", () => engine);
  oncePerThread("distributed by", () => engine);
}
