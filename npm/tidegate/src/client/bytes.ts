import { checkFields, fieldTable } from "../limit/config.ts";
import { SECOND } from "../limit/duration.ts";
import { InputError } from "../limit/errors.ts";
import { type Clock, checkClock } from "./clock.ts";
import { DEFAULT_PRIORITY } from "./options.ts";
import { Queue } from "./queue.ts";
import { type LimitOf, sourcesOf } from "./source.ts";
import { submit } from "./submit.ts";

/** Settings of a stream that is limited. */
export interface StreamLimitOptions {
  /** How fast: above 0, up to 2^40 bytes a second. Not with `limit`. */
  bytesPerSecond?: number | undefined;
  /**
   * Most bytes that pass at once after a pause: from 1, up to 2^40; default what comes in a tenth of a second. Larger
   * chunks are split into pieces of this size, which are views of the chunk, not copies.
   */
  burst?: number | undefined;
  /** A limit whose tokens are bytes, in place of `bytesPerSecond`: several streams, or a whole fleet, share it. */
  limit?: LimitOf | undefined;
  /** The clock and the timers; default the host's. */
  clock?: Clock | undefined;
}

/** Bytes that wait for their turn. */
export interface BytesGate {
  /** What a chunk is cut into. */
  pieces(chunk: unknown): Iterable<Uint8Array>;
  /** Resolves when so many bytes may pass. */
  pass(bytes: number): Promise<void>;
  /** Nobody waits any more. */
  close(reason: unknown): void;
}

const OPTIONS = fieldTable("bytesPerSecond", "burst", "limit", "clock");
const MAX = 2 ** 40;
const TENTH = 0.1;
/** Of a limit that is shared, nobody here knows the capacity. */
const PIECE = 65_536;

function checkBytes(field: string, bytes: unknown, least: number): number {
  const rule = `a number of bytes ${least === 0 ? "above 0" : `from ${least}`} and up to ${MAX}`;
  if (typeof bytes === "number" && bytes >= least && bytes > 0 && bytes <= MAX) return bytes;
  throw new InputError(field, rule, bytes);
}

function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
  throw new InputError("chunk", "bytes: text goes through a TextEncoderStream before", chunk);
}

/** Checks the options; makes what both kinds of streams wait on. */
export function bytesGate(options: StreamLimitOptions): BytesGate {
  if (typeof options !== "object" || options === null) {
    throw new InputError("options", "an object with bytesPerSecond or limit", options);
  }
  checkFields(options, OPTIONS, "limitStream");
  const { bytesPerSecond, burst, limit } = options;
  const clock = checkClock(options.clock);
  if ((bytesPerSecond === undefined) === (limit === undefined)) {
    throw new InputError("bytesPerSecond", "given, or `limit`, and not both", bytesPerSecond);
  }
  const rate = bytesPerSecond === undefined ? MAX : checkBytes("bytesPerSecond", bytesPerSecond, 0);
  const atOnce =
    burst === undefined ? (limit === undefined ? Math.max(1, rate * TENTH) : PIECE) : checkBytes("burst", burst, 1);
  const policy = limit ?? ({ kind: "token bucket", rate, period: SECOND, capacity: atOnce } as const);
  const source = sourcesOf(policy, () => clock.now())();
  const queue = new Queue({ clock, source, maxQueued: Number.POSITIVE_INFINITY });
  const size = Math.floor(atOnce);
  return {
    *pieces(chunk): Generator<Uint8Array> {
      const bytes = bytesOf(chunk);
      for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
    },
    pass: (bytes) => submit(queue, { count: bytes, priority: DEFAULT_PRIORITY }, () => undefined),
    close: (reason) => queue.clear(reason),
  };
}
