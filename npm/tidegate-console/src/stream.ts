/** The live part: server-sent events. */
import type { Counts } from "./counts.ts";
import type { ShadowSwitches } from "./operations.ts";
import type { Figures } from "./wire.ts";

/** ms between two looks at the counts. */
const EVERY = 250;
/** The figures are sent once in this many looks. */
const LOOKS_PER_FIGURES = 4;
/** ms after which a stream ends. The browser connects again, so that the authorization is checked again. */
const LIFETIME = 30_000;
/** Streams at a time. */
const MOST_STREAMS = 20;

/** What all streams report. */
interface Source {
  readonly counts: Counts;
  readonly shadow: ShadowSwitches | undefined;
  /** Distinguishes this process from others behind the same address. */
  readonly process: string;
}

export class Streams {
  readonly #counts: Counts;
  readonly #shadow: ShadowSwitches | undefined;
  readonly #open = new Set<Stream>();
  #process: string | undefined;
  /** Whether the process shuts down: it would wait for the streams that pages open again. */
  closed: boolean = false;

  constructor(counts: Counts, shadow: ShadowSwitches | undefined) {
    this.#counts = counts;
    this.#shadow = shadow;
  }

  /**
   * A stream of counts and denials, or `undefined` if too many are open. `lastId` is the id of the last event that the
   * browser has, of this process or another one.
   */
  open(lastId: string | null): ReadableStream<Uint8Array> | undefined {
    // In Workers the timers of a request end with it, and no cancellation is reported.
    const now = performance.now();
    for (const stream of this.#open) if (now - stream.openedAt >= LIFETIME) this.#open.delete(stream);
    if (this.#open.size >= MOST_STREAMS) return undefined;
    // Workers have random numbers in requests alone.
    this.#process ??= crypto.randomUUID().slice(0, 8);
    const source = { counts: this.#counts, shadow: this.#shadow, process: this.#process };
    const stream: Stream = streamOf(source, resumeAt(lastId, source), () => this.#open.delete(stream));
    this.#open.add(stream);
    return stream.readable;
  }

  close(): void {
    this.closed = true;
    for (const stream of this.#open) stream.end();
  }
}

/** The id of the last denial that the browser has of this process. */
function resumeAt(lastId: string | null, { counts, process }: Source): number {
  const [of, id] = (lastId ?? "").split("-");
  const last = of === process ? Number(id) : 0;
  return Number.isInteger(last) && last <= counts.denied ? last : 0;
}

type Stream = ReturnType<typeof streamOf>;

/** One stream: looks at the counts again and again, and sends what is new. The browser has the first `denied` denials. */
function streamOf({ counts, shadow, process }: Source, denied: number, ended: () => void) {
  const encoder = new TextEncoder();
  /** The number of denials that were sent. */
  let sent = denied;
  /** The first second whose figures are still to be sent. */
  let second = 0;
  let looks = 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  let lifetime: ReturnType<typeof setTimeout> | undefined;
  let output: ReadableStreamDefaultController<Uint8Array> | undefined;

  function newFigures(): string {
    const { now, limits, top } = counts.figures(second);
    const { since, defined } = counts;
    const switches = (shadow?.names ?? []).map((name) => ({ name, on: shadow?.isShadow(name) === true }));
    const figures: Figures = { now, since, process, limits, defined, top, switches };
    // The current second is sent again: it is not over.
    second = Math.floor(now / 1000);
    return `event: figures\ndata: ${JSON.stringify(figures)}\n\n`;
  }

  function newDenials(): string {
    if (counts.denied === sent) return "";
    const denials = counts.denials(sent);
    sent = counts.denied;
    return `id: ${process}-${sent}\nevent: denials\ndata: ${JSON.stringify(denials)}\n\n`;
  }

  /** What is new, as events; empty if nothing is. */
  const news = (): string => (looks++ % LOOKS_PER_FIGURES === 0 ? newFigures() : "") + newDenials();

  function look(controller: ReadableStreamDefaultController<Uint8Array>): void {
    // A browser that does not read gets what is new once it does; nothing is queued for it.
    if ((controller.desiredSize ?? 0) <= 0) return;
    try {
      const text = news();
      if (text !== "") controller.enqueue(encoder.encode(text));
    } catch (error) {
      // The application's own keys or switches may throw: in a timer that would end the process.
      stop();
      controller.error(error);
    }
  }

  function stop(): void {
    clearInterval(timer);
    clearTimeout(lifetime);
    ended();
  }

  function end(): void {
    stop();
    output?.close();
  }

  const readable = new ReadableStream<Uint8Array>({
    start(controller) {
      output = controller;
      controller.enqueue(encoder.encode(`retry: 500\n\n${news()}`));
      timer = setInterval(() => look(controller), EVERY);
      lifetime = setTimeout(end, LIFETIME);
    },
    cancel: stop,
  });
  /** By the monotonic clock. */
  const openedAt = performance.now();
  return { openedAt, readable, end };
}
