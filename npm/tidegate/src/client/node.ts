/**
 * The caller's side for streams of Node.js.
 *
 * @module
 */
import { Transform } from "node:stream";
import { bytesGate, type ObjectLimitOptions, objectsGate, type StreamLimitOptions } from "./streams.ts";

export type { ObjectLimitOptions, StreamLimitOptions } from "./streams.ts";

/** Rejects what waits where the stream is destroyed. */
const destroying = (gate: { close(reason: unknown): void }) =>
  function destroy(error: Error | null, callback: (error: Error | null) => void): void {
    gate.close(error ?? new DOMException("the stream was destroyed", "AbortError"));
    callback(error);
  };

/**
 * A `Transform` of `node:stream` that passes bytes at the limit's rate; otherwise like `limitStream`.
 *
 * ```ts
 * await pipeline(createReadStream(path), limitNodeStream({ bytesPerSecond: 1_000_000 }), response);
 * ```
 *
 * Throws an `InputError` where an option is wrong.
 */
export function limitNodeStream<const N extends string = string>(options: StreamLimitOptions<N>): Transform {
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
    destroy: destroying(gate),
  });
}

/**
 * A `Transform` of `node:stream` in object mode that passes so many objects a second, or so much of their weight; otherwise
 * like `limitObjectStream`.
 *
 * ```ts
 * await pipeline(rows, limitNodeObjectStream<Row>({ perSecond: 500, weight: (row) => row.units }), sink);
 * ```
 *
 * Throws an `InputError` where an option is wrong.
 */
export function limitNodeObjectStream<T = unknown, const N extends string = string>(
  options: ObjectLimitOptions<T, N>,
): Transform {
  const gate = objectsGate(options);
  return new Transform({
    objectMode: true,
    highWaterMark: 1,
    transform(object: T, _encoding, callback): void {
      gate.wait(object).then(() => callback(null, object), callback);
    },
    destroy: destroying(gate),
  });
}
