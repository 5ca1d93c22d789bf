/**
 * The caller's side for streams of Node.js.
 *
 * @module
 */
import { Transform } from "node:stream";
import { bytesGate, type StreamLimitOptions } from "./streams.ts";

export type { StreamLimitOptions } from "./streams.ts";

/**
 * A `Transform` of `node:stream` that passes bytes at the limit's rate; otherwise like `limitStream`.
 *
 * ```ts
 * await pipeline(createReadStream(path), limitNodeStream({ bytesPerSecond: 1_000_000 }), response);
 * ```
 *
 * Throws an `InputError` where an option is wrong.
 */
export function limitNodeStream(options: StreamLimitOptions): Transform {
  const gate = bytesGate(options);
  return new Transform({
    // One piece on either side: anything more is memory.
    highWaterMark: 1,
    transform(chunk, _encoding, callback): void {
      const pushAll = async (): Promise<void> => {
        for await (const piece of gate.pieces(chunk)) this.push(piece);
      };
      pushAll().then(() => callback(), callback);
    },
    destroy(error, callback): void {
      gate.close(error ?? new DOMException("the stream was destroyed", "AbortError"));
      callback(error);
    },
  });
}
