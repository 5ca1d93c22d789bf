import { type Check, checkTable, numberFrom, ANY } from "../limit/checks.ts";
import { SECOND } from "../limit/duration.ts";
import { InputError } from "../limit/errors.ts";
import { CLOCK, type Clock, systemClock } from "./clock.ts";
import { DEFAULT_PRIORITY } from "./options.ts";
import { Queue } from "./queue.ts";
import { type LimitOf, sourcesOf } from "./source.ts";

/** Settings of a limited stream. */
export interface StreamLimitOptions {
  /** The rate: above 0, up to 2^40 bytes per second. Not with `limit`. */
  bytesPerSecond?: number | undefined;
  /**
   * Most bytes that pass together after a pause: from 1, up to 2^40; default a tenth of a second's. Larger chunks are
   * split into pieces of this size, which are views of the chunk, not copies.
   */
  burst?: number | undefined;
  /** A limit whose tokens are bytes, in place of `bytesPerSecond`: several streams, or a fleet, share it. */
  limit?: LimitOf | undefined;
  /** The clock and the timers; default the host's. */
  clock?: Clock | undefined;
}

const MAX = 2 ** 40;
/** The burst of a shared limit, whose capacity is unknown here. */
const SHARED_BURST = 65_536;
const OPTIONS: Readonly<Record<string, Check>> = {
  bytesPerSecond: numberFrom(`a number of bytes above 0 and up to ${MAX}`, Number.MIN_VALUE, MAX),
  burst: numberFrom(`a number of bytes from 1 and up to ${MAX}`, 1, MAX),
  limit: ANY,
  clock: CLOCK,
};

function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
  throw new InputError("chunk", "bytes: text goes through a TextEncoderStream before", chunk);
}

/** Where the bytes of a stream wait: for both kinds of stream. */
export interface BytesGate {
  /** Yields a chunk in pieces, each when it may pass. */
  pieces(chunk: unknown): AsyncIterable<Uint8Array>;
  /** Rejects what waits. */
  close(reason: unknown): void;
}

/** Checks the options and makes the gate. */
export function bytesGate(options: StreamLimitOptions): BytesGate {
  checkTable("limitStream", options, OPTIONS, "an object with bytesPerSecond or limit");
  const { bytesPerSecond: rate, limit, clock = systemClock } = options;
  if ((rate === undefined) === (limit === undefined)) {
    throw new InputError("bytesPerSecond", "given, or `limit`, and not both", rate);
  }
  const { burst = rate === undefined ? SHARED_BURST : Math.max(1, rate / 10) } = options;
  const own = { kind: "token bucket", rate: rate ?? 1, period: SECOND, capacity: burst } as const;
  const source = sourcesOf(limit ?? own, () => clock.now())();
  const queue = new Queue({ clock, source, maxQueued: Number.POSITIVE_INFINITY });
  const size = Math.floor(burst);
  return {
    async *pieces(chunk) {
      const bytes = bytesOf(chunk);
      for (let at = 0; at < bytes.byteLength; at += size) {
        const piece = bytes.subarray(at, at + size);
        await queue.run({ count: piece.byteLength, priority: DEFAULT_PRIORITY }, () => undefined);
        yield piece;
      }
    },
    close: (reason) => queue.clear(reason),
  };
}

/**
 * A web `TransformStream` that passes bytes at the limit's rate, with backpressure: it buffers at most one chunk.
 *
 * ```ts
 * const slow = response.body.pipeThrough(limitStream({ bytesPerSecond: 1_000_000 }));
 * ```
 *
 * Chunks are bytes; those larger than the burst are split. In any t seconds at most `burst + bytesPerSecond * t` bytes
 * pass. Throws an `InputError` where an option is wrong. For streams of Node.js, use `limitNodeStream` of
 * `tidegate/client/node`.
 */
export function limitStream(options: StreamLimitOptions): TransformStream<Uint8Array, Uint8Array> {
  const gate = bytesGate(options);
  // TypeScript's Transformer lacks `cancel`.
  const transformer: Transformer<Uint8Array, Uint8Array> & { cancel(reason: unknown): void } = {
    async transform(chunk, controller): Promise<void> {
      for await (const piece of gate.pieces(chunk)) controller.enqueue(piece);
    },
    cancel: (reason) => gate.close(reason),
  };
  return new TransformStream<Uint8Array, Uint8Array>(transformer);
}
