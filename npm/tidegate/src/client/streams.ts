/** Streams whose bytes or objects wait for tokens. */
import { MAX_COUNT } from "../engine/generated/bounds.ts";
import { ANY, checkTable, FUNCTION, numberFrom, type Table } from "../limit/checks.ts";
import { TOKENS } from "../limit/tokens.ts";
import { isBytes, tagOf } from "../limit/realms.ts";
import { SECOND } from "../limit/duration.ts";
import { InputError, isRateLimitError } from "../limit/errors.ts";
import { CLOCK, type Clock, systemClock } from "./clock.ts";
import { DEFAULT_PRIORITY } from "./options.ts";
import { Queue } from "./queue.ts";
import { type ConfigOrLimit, type LimitOf, sourcesOf } from "./source.ts";

/** Settings of a limited stream. */
export interface StreamLimitOptions<N extends string = string> {
  /** The rate: above 0, up to 2^40 bytes per second. Not with `limit`. */
  bytesPerSecond?: number | undefined;
  /**
   * Most bytes that pass together after a pause: from 1, up to 2^40; default a tenth of a second's, and with `limit` 65,536:
   * at most its `maxReserved`, if it has one, divided by the streams that share it. Larger chunks are split into pieces of
   * this size, which are views of the chunk, not copies.
   */
  burst?: number | undefined;
  /** A limit whose tokens are bytes, instead of `bytesPerSecond`: several streams, or a fleet, share it. */
  limit?: LimitOf<N> | undefined;
  /** The clock and the timers; default the host's. */
  clock?: Clock | undefined;
}

/** Settings of a limited stream of objects. */
export interface ObjectLimitOptions<T, N extends string = string> {
  /** The rate: above 0, up to 2^40 objects, or of their weights, per second. Not with `limit`. */
  perSecond?: number | undefined;
  /**
   * Most objects, or weights, that pass together after a pause: above 0, up to 2^40; default a tenth of a second's, and at
   * least 1. A heavier object passes when all of its weight is paid. Not with `limit`.
   */
  burst?: number | undefined;
  /** What an object takes: 0 to 2^40; default 1. */
  weight?: ((object: T) => number) | undefined;
  /**
   * A limit whose tokens are objects, or weights, instead of `perSecond`: several streams, or a fleet, share it. Its
   * `maxReserved`, if it has one, must hold the heaviest object of each stream: beyond it a stream fails with a `RateLimitError`.
   */
  limit?: LimitOf<N> | undefined;
  /** The clock and the timers; default the host's. */
  clock?: Clock | undefined;
}

/** The burst of a shared limit, whose capacity is unknown here. */
const SHARED_BURST = 65_536;
const RULE = "at most the `maxReserved` of `limit`, which all its streams share";
const OPTIONS: Table = {
  bytesPerSecond: numberFrom(`a number of bytes above 0 and up to ${MAX_COUNT}`, Number.MIN_VALUE, MAX_COUNT),
  burst: numberFrom(`a number of bytes from 1 and up to ${MAX_COUNT}`, 1, MAX_COUNT),
  limit: ANY,
  clock: CLOCK,
};

const ABOVE_ZERO = numberFrom(`a number above 0 and up to ${MAX_COUNT}`, Number.MIN_VALUE, MAX_COUNT);
const OBJECTS: Table = {
  perSecond: ABOVE_ZERO,
  burst: ABOVE_ZERO,
  weight: FUNCTION,
  limit: ANY,
  clock: CLOCK,
};

/** Throws unless there is either a rate of this name or a shared limit. */
function checkRate(field: string, rate: number | undefined, limit: LimitOf | undefined): void {
  if ((rate === undefined) === (limit === undefined)) {
    throw new InputError(field, "given, or `limit`, and not both", rate);
  }
}

/** A limit in tokens per second, of one stream. */
const perSecond = (rate: number, capacity: number) =>
  ({ kind: "token bucket", rate, period: SECOND, capacity }) as const;

/** Where the tokens of a stream are waited for. */
function flowOf(limit: ConfigOrLimit, clock: Clock) {
  const source = sourcesOf(limit, () => clock.now())();
  const queue = new Queue({ clock, source, maxQueued: Infinity });
  return {
    take: (count: number) => queue.run({ count, priority: DEFAULT_PRIORITY, notAfter: Infinity }, () => undefined),
    /** Whether the limit's `maxReserved` is less. */
    exceedsReserve: async (count: number) => count > ((await source.value()).config.maxReserved ?? Infinity),
    /** Rejects what waits. */
    close: (reason: unknown): void => queue.clear(reason),
  };
}

function bytesOf(chunk: unknown): Uint8Array {
  if (isBytes(chunk)) return chunk;
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (/^\[object (Shared)?ArrayBuffer\]$/.test(tagOf(chunk))) return new Uint8Array(chunk as ArrayBuffer);
  throw new InputError("chunk", "bytes: pipe text through a TextEncoderStream first", chunk);
}

/** Where the chunks of a stream wait: for web streams and those of Node.js. */
export interface Gate<T> {
  /** Passes a chunk on, bytes in pieces, each when it may pass. */
  pass(chunk: unknown, push: (piece: T) => unknown): Promise<void>;
  /** Rejects what waits. */
  close(reason: unknown): void;
}

export function bytesGate(options: StreamLimitOptions): Gate<Uint8Array> {
  checkTable("limitStream", options, OPTIONS, "an object with bytesPerSecond or limit");
  const { bytesPerSecond: rate, limit, clock = systemClock() } = options;
  checkRate("bytesPerSecond", rate, limit);
  const { burst = rate === undefined ? SHARED_BURST : Math.max(1, rate / 10) } = options;
  const { take, exceedsReserve, close } = flowOf(limit ?? perSecond(rate as number, burst), clock);
  const size = Math.floor(burst);
  return {
    async pass(chunk, push) {
      const bytes = bytesOf(chunk);
      for (let at = 0; at < bytes.byteLength; at += size) {
        const piece = bytes.subarray(at, at + size);
        await take(piece.byteLength).catch(async (error: unknown) => {
          const isTooLarge = isRateLimitError(error) && (await exceedsReserve(piece.byteLength));
          throw isTooLarge ? new InputError("burst", RULE, piece.byteLength) : error;
        });
        push(piece);
      }
    },
    close,
  };
}

export function objectsGate<T>(options: ObjectLimitOptions<T>): Gate<T> {
  checkTable("limitObjectStream", options, OBJECTS, "an object with perSecond or limit");
  const { perSecond: rate, limit, clock = systemClock(), weight = () => 1 } = options;
  checkRate("perSecond", rate, limit);
  if (rate === undefined && options.burst !== undefined) {
    throw new InputError("burst", "absent with `limit`, whose capacity it is", options.burst);
  }
  const { burst = Math.max(1, (rate ?? 0) / 10) } = options;
  const { take, close } = flowOf(limit ?? perSecond(rate as number, burst), clock);
  return {
    async pass(object: T, push) {
      const count = weight(object);
      if (!TOKENS.accepts(count))
        throw new InputError("weight", `a function that returns a number from 0 to ${MAX_COUNT}`, count);
      await take(count);
      push(object);
    },
    close,
  };
}

function streamOf<T>({ pass, close }: Gate<T>): TransformStream<T, T> {
  let output: TransformStreamDefaultController<T>;
  // TypeScript's Transformer lacks `cancel`.
  const transformer: Transformer<T, T> & { cancel(reason: unknown): void } = {
    start(controller) {
      output = controller;
    },
    transform: (chunk, controller) => pass(chunk, (piece) => controller.enqueue(piece)),
    cancel: close,
  };
  const stream = new TransformStream(transformer);
  // An abort of the stream's own writable end waits for the chunk under way, and so for its tokens: only a sink of one's own
  // has a signal.
  const writer = stream.writable.getWriter();
  const writable = new WritableStream<T>({
    start(controller) {
      writer.closed.catch((reason) => controller.error(reason));
      // Older browsers have no signal.
      const signal = controller.signal as AbortSignal | undefined;
      signal?.addEventListener("abort", () => {
        output.error(signal.reason);
        close(signal.reason);
      });
    },
    write: (chunk) => writer.write(chunk),
    close: () => writer.close(),
    abort: (reason) => writer.abort(reason),
  });
  return Object.defineProperty(stream, "writable", { value: writable });
}

/**
 * A web `TransformStream` that passes bytes at the limit's rate, with backpressure: it buffers at most one chunk.
 *
 * ```ts
 * const slow = response.body.pipeThrough(limitStream({ bytesPerSecond: 1_000_000 }));
 * ```
 *
 * Chunks are bytes; those larger than the burst are split. In any t seconds at most `burst + bytesPerSecond * t` bytes
 * pass. Throws an `InputError` if an option is wrong. For streams of Node.js, use `limitNodeStream` of
 * `tidegate/client/node`.
 */
export function limitStream<const N extends string = string>(
  options: StreamLimitOptions<N>,
): TransformStream<Uint8Array, Uint8Array> {
  return streamOf(bytesGate(options));
}

/**
 * A web `TransformStream` that limits objects per second, or their weight, in order and with backpressure: it buffers
 * at most one object.
 *
 * ```ts
 * const rows = source.pipeThrough(limitObjectStream<Row>({ perSecond: 500, weight: (row) => row.units }));
 * ```
 *
 * In any t seconds at most `burst + perSecond * t` pass, or if an object is heavier than the burst, its weight instead of
 * the burst. Throws an `InputError` if an option is wrong; a weight out of range fails the stream with one. For streams of
 * Node.js, use `limitNodeObjectStream` of `tidegate/client/node`.
 */
export function limitObjectStream<T = unknown, const N extends string = string>(
  options: ObjectLimitOptions<T, N>,
): TransformStream<T, T> {
  return streamOf(objectsGate(options));
}
