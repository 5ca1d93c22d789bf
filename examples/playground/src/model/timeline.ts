/** What the plot shows: the sampled value, and the outcomes of requests, counted in short spans. */
export const SPAN_MS = 250;
/** How far back and ahead the plot goes. */
export const PAST_MS = 30_000;
export const AHEAD_MS = 8_000;
const MOST_SAMPLES = 1_500;

export type Outcome = "granted" | "reserved" | "denied" | "never" | "other";

export interface Span {
  granted: number;
  reserved: number;
  denied: number;
}

export class Timeline {
  readonly times: number[] = [];
  readonly values: number[] = [];
  readonly spans = new Map<number, Span>();
  /** When each window was first observed. */
  readonly windows: number[] = [];

  /** The value at a time. `window` is the start of its window, for a fixed window. */
  sample(now: number, value: number, window: number | undefined): void {
    if (now < (this.times.at(-1) ?? 0)) return;
    this.times.push(now);
    this.values.push(value);
    if (this.times.length > MOST_SAMPLES) {
      this.times.splice(0, MOST_SAMPLES / 3);
      this.values.splice(0, MOST_SAMPLES / 3);
    }
    if (window !== undefined && window > (this.windows.at(-1) ?? 0)) {
      this.windows.push(window);
      if (this.windows.length > 100) this.windows.shift();
    }
  }

  /** Requested tokens, by outcome. */
  count(now: number, outcome: Outcome, tokens: number): void {
    if (outcome === "other") return;
    const at = now - (now % SPAN_MS);
    const span = this.spans.get(at) ?? { granted: 0, reserved: 0, denied: 0 };
    this.spans.set(at, span);
    span[outcome === "never" ? "denied" : outcome] += tokens;
    for (const old of this.spans.keys()) {
      if (old >= now - PAST_MS - 1_000) break;
      this.spans.delete(old);
    }
  }

  clear(): void {
    this.times.length = 0;
    this.values.length = 0;
    this.windows.length = 0;
    this.spans.clear();
  }
}
