/**
 * The two classes of a host that wasm-bindgen's glue makes when it is imported, in their place: Jest's jsdom has neither.
 * They do as much as the glue needs.
 */
import { generalizedUtf8 } from "./utf8.ts";

export class TextEncoder {
  encode(text: string): Uint8Array {
    return generalizedUtf8(text.replace(/[\ud800-\udfff]/gu, "\uFFFD"));
  }
}

export class TextDecoder {
  /** The text of bytes that are UTF-8, as all of Rust's strings are. */
  decode(bytes: ArrayLike<number> = []): string {
    return decodeURIComponent(Array.from(bytes, (byte) => `%${(256 + byte).toString(16).slice(1)}`).join(""));
  }
}
