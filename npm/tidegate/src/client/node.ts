/**
 * The caller's side for streams of Node.js.
 *
 * @module
 */
import { Transform } from "node:stream";
import { bytesGate, type StreamLimitOptions } from "./bytes.ts";

export type { StreamLimitOptions } from "./bytes.ts";

/**
 * A `Transform` of `node:stream` that lets bytes pass no faster than the policy says; otherwise like `limitStream`.
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
    // Whatever waits before it or behind it is memory: one piece is enough on either side.
    highWaterMark: 1,
    transform(chunk, _encoding, callback): void {
      const all = async (): Promise<void> => {
        for (const piece of gate.pieces(chunk)) {
          await gate.pass(piece.byteLength);
          this.push(piece);
        }
      };
      all().then(() => callback(), callback);
    },
    destroy(error, callback): void {
      gate.close(error ?? new DOMException("the stream was destroyed", "AbortError"));
      callback(error);
    },
  });
}
