import { bytesGate, type StreamLimitOptions } from "./bytes.ts";

/**
 * A web `TransformStream` that lets bytes pass no faster than the policy says, and holds back whoever writes meanwhile: it
 * keeps one chunk at most.
 *
 * ```ts
 * const slow = response.body.pipeThrough(limitStream({ bytesPerSecond: 1_000_000 }));
 * ```
 *
 * Chunks are bytes; those larger than the burst are split. In any span of t seconds at most `burst + bytesPerSecond * t`
 * bytes come out, and no fewer than can, while the reader keeps up. Throws an `InputError` where an option is wrong. For
 * streams of Node.js there is `limitNodeStream` in `tidegate/client/node`.
 */
export function limitStream(options: StreamLimitOptions): TransformStream<Uint8Array, Uint8Array> {
  const gate = bytesGate(options);
  // `cancel` is younger than the type.
  const transformer: Transformer<Uint8Array, Uint8Array> & { cancel(reason: unknown): void } = {
    async transform(chunk, controller): Promise<void> {
      for (const piece of gate.pieces(chunk)) {
        await gate.pass(piece.byteLength);
        controller.enqueue(piece);
      }
    },
    cancel: (reason) => gate.close(reason),
  };
  return new TransformStream<Uint8Array, Uint8Array>(transformer);
}
