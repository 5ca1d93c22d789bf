// Logs as chunks of bytes: files and standard input, gzip or not.
import { type FileHandle, open } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";

const CHUNK = 1 << 18;
/** The first bytes of every gzip file (RFC 1952). */
const GZIP = [0x1f, 0x8b] as const;

export interface Log {
  readonly name: string;
  /** Bytes of the file; absent if it has no size, such as a pipe. */
  readonly size: number | undefined;
  /** Its content, unpacked. `count` is called with the number of bytes of each read, before they are unpacked. */
  chunks(count: (bytes: number) => void): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

const failed = (name: string, cause: unknown): Error =>
  new Error(`${name} cannot be read: ${(cause as Error).message}`, { cause });

/** The same bytes, unpacked if they begin with the signature of gzip. */
async function* unpacked(source: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head = Buffer.alloc(0);
  while (head.length < GZIP.length) {
    const { value, done } = await source.next();
    if (done === true) break;
    head = Buffer.concat([head, value]);
  }
  const all = async function* (): AsyncGenerator<Uint8Array> {
    yield head;
    yield* { [Symbol.asyncIterator]: () => source };
  };
  if (!GZIP.every((byte, i) => head[i] === byte)) return yield* all();
  const gunzip = createGunzip({ chunkSize: CHUNK });
  // An error of the source destroys `gunzip` with it, so the loop over that throws it.
  pipeline(Readable.from(all(), { objectMode: false }), gunzip, () => {});
  yield* gunzip;
}

async function* read(
  name: string,
  source: AsyncIterable<Uint8Array>,
  count: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      count(chunk.length);
      yield chunk;
    }
  };
  try {
    yield* unpacked(counted());
  } catch (cause) {
    throw failed(name, cause);
  }
}

/** Opens a file; `-` is standard input. Throws an error that names it if it cannot be read. */
export async function openLog(name: string): Promise<Log> {
  if (name === "-") {
    const chunks = (count: (bytes: number) => void) => read(name, process.stdin, count);
    return { name, size: undefined, chunks, close: async () => {} };
  }
  let file: FileHandle | undefined;
  try {
    const opened = await open(name);
    file = opened;
    const about = await opened.stat();
    if (about.isDirectory()) throw new Error("it is a folder, not a file");
    const source = () => opened.createReadStream({ highWaterMark: CHUNK });
    return {
      name,
      size: about.isFile() ? about.size : undefined,
      chunks: (count) => read(name, source(), count),
      close: () => opened.close(),
    };
  } catch (cause) {
    await file?.close();
    throw failed(name, cause);
  }
}
