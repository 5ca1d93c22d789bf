/**
 * Reports what rate limits would have done to the traffic in logs.
 *
 * ```ts
 * import { replay } from "tidegate-replay";
 *
 * const { report, text } = await replay(["access.log.gz"], { limits: ["rate=10 period=1m capacity=20"] });
 * ```
 *
 * @module
 */
import { type Log, openLog } from "./log.ts";
import { begin, type Options, type Replay, type Replayed } from "./module.ts";
import { checkedOptions } from "./options.ts";
import { temporaryFile } from "./spool.ts";

export type {
  BadLine,
  Format,
  LimitReport,
  Options,
  PeakReport,
  Read,
  Replayed,
  Report,
  Suggestion,
  Waits,
  WorstKey,
} from "./generated/replay.js";

/** How far a replay is. */
export interface Progress {
  /** Bytes read, before they are unpacked. */
  readonly bytes: number;
  /** Bytes of all files; absent if one has no size, such as standard input. */
  readonly total: number | undefined;
  /** Requests decided. */
  readonly requests: number;
  /** Whether the logs are read, and only the smallest capacity and proposals are missing. */
  readonly read: boolean;
}

/** Requests between two calls of `onProgress`. */
const STEP = 50_000;

/**
 * Reads logs, in their order, and decides their requests.
 *
 * Memory is bounded by the number of keys. The requests are kept in a temporary file (`os.tmpdir()`), about 30 bytes each,
 * for the smallest capacity and for proposals: there the event loop waits, for some seconds after a log of 1 GB.
 *
 * @param files paths; `-` is standard input. If a file is gzip, it is unpacked.
 * @param options the limits, and how to read the logs
 * @param onProgress called about every 50,000 requests, at the end of each file, and once when all are read
 * @throws an `Error` if a file cannot be read or has no known format, an option or a limit is not legal, or no line is a
 * request. A bad line among good ones is counted in `report.read.bad`.
 */
export async function replay(
  files: readonly string[],
  options: Options,
  onProgress: (progress: Progress) => void = () => {},
): Promise<Replayed> {
  const given = checkedOptions(files, options);
  const spool = temporaryFile();
  const logs: Log[] = [];
  let run: Replay | undefined;
  try {
    run = begin(given, spool);
    // A file that is missing ends the replay before any is read.
    for (const file of files) logs.push(await openLog(file));
    await readAll(run, logs, onProgress);
    const all = run;
    // It frees itself.
    run = undefined;
    return all.finish();
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    // A trap: the module's state is lost with it.
    run = undefined;
    const message = `the replay failed (${error.message}): memory ran out, or this is a defect of tidegate-replay`;
    throw new Error(message, { cause: error });
  } finally {
    run?.free();
    // What failed before is what the caller gets.
    await Promise.allSettled(logs.map((log) => log.close()));
    spool.close();
  }
}

async function readAll(run: Replay, logs: readonly Log[], onProgress: (progress: Progress) => void): Promise<void> {
  const total = logs.reduce<number | undefined>(
    (sum, { size }) => (sum === undefined || size === undefined ? undefined : sum + size),
    0,
  );
  let [bytes, next] = [0, STEP];
  const report = (read: boolean): void => onProgress({ bytes, total, requests: run.requests, read });
  for (const log of logs) {
    run.begin(log.name);
    for await (const chunk of log.chunks((count) => {
      bytes += count;
    })) {
      run.push(chunk);
      if (run.requests < next) continue;
      next = run.requests + STEP;
      report(false);
    }
    run.end();
    report(false);
  }
  report(true);
}
