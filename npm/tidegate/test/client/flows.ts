/** Streams from a source through a limited stream into a sink that keeps up. */
import { Readable, type Transform, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { FakeClock } from "../../src/testing/index.ts";

/** How many values were pulled from the source, and how the pipe failed. */
export interface Flow {
  pulled: number;
  error: unknown;
}

/** `next` returns the source's values by their number, and `undefined` at its end; `write` gets what comes out. */
export function throughWeb<T>(
  limited: TransformStream<T, T>,
  next: (n: number) => T | undefined,
  write: (value: T) => void,
): Flow {
  const flow: Flow = { pulled: 0, error: undefined };
  const pull = (controller: ReadableStreamDefaultController<T>): void => {
    const value = next(flow.pulled++);
    if (value === undefined) controller.close();
    else controller.enqueue(value);
  };
  const source = new ReadableStream<T>({ pull }, { highWaterMark: 0 });
  source
    .pipeThrough(limited)
    .pipeTo(new WritableStream({ write }))
    .catch((error: unknown) => {
      flow.error = error;
    });
  return flow;
}

/** The same with streams of Node.js. */
export function throughNode<T>(
  limited: Transform,
  next: (n: number) => T | undefined,
  write: (value: T) => void,
): Flow {
  const flow: Flow = { pulled: 0, error: undefined };
  const objectMode = limited.writableObjectMode;
  const source = new Readable({
    objectMode,
    highWaterMark: 1,
    read() {
      this.push(next(flow.pulled++) ?? null);
    },
  });
  const sink = new Writable({
    objectMode,
    write(value: T, _encoding, done) {
      write(value);
      done();
    },
  });
  pipeline(source, limited, sink).catch((error: unknown) => {
    flow.error = error;
  });
  return flow;
}

/** Advances in small steps, so that promises settle in their order. */
export async function pass(clock: FakeClock, ms: number, step: number): Promise<void> {
  for (let at = 0; at < ms; at += step) await clock.pass(Math.min(step, ms - at));
}
