/**
 * The caller's side for streams of Node.js.
 *
 * @module
 */
import { Transform } from "node:stream";
import { bytesGate, type Gate, type ObjectLimitOptions, objectsGate, type StreamLimitOptions } from "./streams.ts";

export type { ObjectLimitOptions, StreamLimitOptions } from "./streams.ts";

function transformOf({ pass, close }: Gate<unknown>, objectMode: boolean): Transform {
  return new Transform({
    objectMode,
    // One piece on either side: anything more is memory.
    highWaterMark: 1,
    transform(chunk, _encoding, callback): void {
      pass(chunk, (piece) => this.push(piece)).then(() => callback(), callback);
    },
    destroy(error, callback): void {
      close(error ?? new DOMException("the stream was destroyed", "AbortError"));
      callback(error);
    },
  });
}

/**
 * A `Transform` of `node:stream` that passes bytes at the limit's rate; otherwise like `limitStream`.
 *
 * ```ts
 * await pipeline(createReadStream(path), limitNodeStream({ bytesPerSecond: 1_000_000 }), response);
 * ```
 *
 * Throws an `InputError` if an option is wrong.
 */
export function limitNodeStream<const N extends string = string>(options: StreamLimitOptions<N>): Transform {
  return transformOf(bytesGate(options), false);
}

/**
 * A `Transform` of `node:stream` in object mode that limits objects per second, or their weight; otherwise like
 * `limitObjectStream`.
 *
 * ```ts
 * await pipeline(rows, limitNodeObjectStream<Row>({ perSecond: 500, weight: (row) => row.units }), sink);
 * ```
 *
 * Throws an `InputError` if an option is wrong.
 */
export function limitNodeObjectStream<T = unknown, const N extends string = string>(
  options: ObjectLimitOptions<T, N>,
): Transform {
  return transformOf(objectsGate(options), true);
}
