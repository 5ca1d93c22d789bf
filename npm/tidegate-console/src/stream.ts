/** The live part: server-sent events. */
import type { Counts } from "./counts.ts";
import type { ShadowSwitches } from "./operations.ts";
import type { Figures } from "./wire.ts";

/** ms between two looks at the counts. */
const EVERY = 250;
/** ms after which a stream ends. The browser connects again, so that the authorization is checked again. */
const LIFETIME = 30_000;
/** Streams at a time. */
const MOST_STREAMS = 20;

export class Streams {
  readonly #counts: Counts;
  readonly #shadow: ShadowSwitches | undefined;
  /** Distinguishes this process from others behind the same address. */
  readonly #process = crypto.randomUUID().slice(0, 8);
  /** What ends each stream. */
  readonly #open = new Set<() => void>();

  constructor(counts: Counts, shadow: ShadowSwitches | undefined) {
    this.#counts = counts;
    this.#shadow = shadow;
  }

  /**
   * A stream of counts and denials, or `undefined` where too many are open. `lastId` is the id of the last event that the
   * browser has, of this process or another one.
   */
  open(lastId: string | null): ReadableStream<Uint8Array> | undefined {
    if (this.#open.size >= MOST_STREAMS) return undefined;
    const encoder = new TextEncoder();
    const counts = this.#counts;
    const shadow = this.#shadow;
    const process = this.#process;
    let denied = this.#resumeAt(lastId);
    let second = 0;
    let looks = 0;
    let timer: ReturnType<typeof setInterval> | undefined;
    let end = (): void => {};
    const close = (): void => {
      clearInterval(timer);
      this.#open.delete(end);
    };
    /** What is new, as events. Empty where nothing is. */
    const news = (): string => {
      let text = "";
      if (looks++ % 4 === 0) {
        const { now, from, limits, top } = counts.figures(second);
        const { since, defined } = counts;
        const switches = (shadow?.names ?? []).map((name) => ({ name, on: shadow?.isShadow(name) === true }));
        const figures: Figures = { now, since, process, from, limits, defined, top, switches };
        text += `event: figures\ndata: ${JSON.stringify(figures)}\n\n`;
        // The current second is sent again: it is not over.
        second = Math.floor(now / 1000);
      }
      if (counts.denied !== denied) {
        const denials = counts.denials(denied);
        denied = counts.denied;
        text += `id: ${process}-${denied}\nevent: denials\ndata: ${JSON.stringify(denials)}\n\n`;
      }
      return text;
    };
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        const look = (): void => {
          // A browser that does not read gets what is new once it does; nothing is queued for it.
          if ((controller.desiredSize ?? 0) <= 0) return;
          const text = news();
          if (text !== "") controller.enqueue(encoder.encode(text));
        };
        end = () => {
          close();
          controller.close();
        };
        this.#open.add(end);
        controller.enqueue(encoder.encode(`retry: 500\n\n${news()}`));
        timer = setInterval(() => {
          look();
          if (looks >= LIFETIME / EVERY) end();
        }, EVERY);
      },
      cancel: close,
    });
  }

  close(): void {
    for (const end of this.#open) end();
  }

  #resumeAt(lastId: string | null): number {
    const [process, id] = (lastId ?? "").split("-");
    const last = process === this.#process ? Number(id) : 0;
    return Number.isInteger(last) && last >= 0 && last <= this.#counts.denied ? last : 0;
  }
}
