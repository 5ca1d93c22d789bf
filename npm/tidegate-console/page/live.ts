/** The connection to the handler, and what came from it. */
import {
  type Denial,
  type Denials,
  type Figures,
  type KeyState,
  type LimitFigures,
  type OperationRequest,
  SPAN,
  type Switch,
  type SwitchRequest,
} from "../src/wire.ts";

/** The log's rows, and those that wait while it is paused. */
const MOST_ROWS = 100;
/** ms without counts, which come each second, after which the connection counts as lost and another one is made. */
const SILENCE = 5000;

/** The counts of ten minutes; the last number is that of the second of `now`. */
export type Series = LimitFigures;

export interface View {
  /** `refused`: the server responds, but not with a stream, as when a session has ended or too many pages are open. */
  readonly status: "connecting" | "live" | "lost" | "refused";
  readonly figures: Figures | undefined;
  readonly series: readonly Series[];
  /** Newest first. */
  readonly denials: readonly Denial[];
  readonly paused: boolean;
  /** Denials that are not in the list: too many in a moment, or while it was paused. */
  readonly skipped: number;
  /** Whether several processes have answered. */
  readonly several: boolean;
}

const EMPTY: readonly number[] = new Array<number>(SPAN).fill(0);
const NOTHING = { figures: undefined, series: [], denials: [], skipped: 0 } as const;

/** The numbers of ten minutes, moved on by `passed` seconds, with the new ones at the end. */
export function advance(old: readonly number[], passed: number, fresh: readonly number[]): number[] {
  const kept = [...old.slice(passed), ...EMPTY.slice(0, Math.min(passed, SPAN))].slice(-SPAN);
  return [...kept.slice(0, SPAN - fresh.length), ...fresh];
}

export class Live {
  #view: View = { ...NOTHING, status: "connecting", paused: false, several: false };
  readonly #listeners = new Set<() => void>();

  constructor() {
    this.#connect();
  }

  readonly view = (): View => this.#view;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly pause = (paused: boolean): void => this.#set({ paused });

  #set(part: Partial<View>): void {
    this.#view = { ...this.#view, ...part };
    for (const listener of this.#listeners) listener();
  }

  #connect(): void {
    const url = new URL(location.href);
    url.hash = "";
    url.searchParams.set("stream", "");
    const source = new EventSource(url);
    // The browser opens a stream again that ends, and reports nothing if the server does not answer.
    const silence = (): ReturnType<typeof setTimeout> =>
      setTimeout(() => {
        if (source.readyState !== EventSource.CLOSED) this.#set({ status: "lost" });
        source.close();
        this.#connect();
      }, SILENCE);
    let silent = silence();
    let isFirst = true;
    source.addEventListener("figures", ({ data }) => {
      clearTimeout(silent);
      silent = silence();
      this.#figures(JSON.parse(data));
    });
    source.addEventListener("denials", ({ data }) => {
      this.#denials(JSON.parse(data), isFirst);
      isFirst = false;
    });
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) return;
      // A stream does not report what the server responded, nor whether it did.
      fetch(url, { method: "HEAD" }).then(
        () => this.#set({ status: "refused" }),
        () => this.#set({ status: "lost" }),
      );
    });
  }

  #figures(figures: Figures): void {
    const before = this.#view.figures;
    const isOther = before !== undefined && before.process !== figures.process;
    const old = new Map(isOther ? [] : this.#view.series.map((series) => [series.name, series]));
    const passed = Math.floor(figures.now / 1000) - Math.floor((before?.now ?? 0) / 1000);
    const series = figures.limits.map(({ granted, denied, ...rest }) => ({
      ...rest,
      granted: advance(old.get(rest.name)?.granted ?? EMPTY, passed, granted),
      denied: advance(old.get(rest.name)?.denied ?? EMPTY, passed, denied),
    }));
    // One that began later has taken the place of the other.
    const several = this.#view.several || (isOther && figures.since <= before.now);
    const forgotten = isOther ? { denials: [], skipped: 0, several } : {};
    this.#set({ ...forgotten, figures, series, status: "live" });
  }

  /** `all`: they are the first of a stream, which has those that are listed. */
  #denials({ denials, skipped }: Denials, all: boolean): void {
    const view = all && !this.#view.paused ? { ...this.#view, denials: [], skipped: 0 } : this.#view;
    const listed = view.paused ? [] : denials.toReversed();
    this.#set({
      denials: [...listed, ...view.denials].slice(0, MOST_ROWS),
      skipped: view.skipped + skipped + denials.length - listed.length,
    });
  }
}

/** The handler refused a request that it would refuse again. */
export class Mistake extends Error {}

/** Sends an operation to the handler. @throws with the handler's message: a {@link Mistake} with status 400 */
export async function send(request: OperationRequest): Promise<KeyState>;
export async function send(request: SwitchRequest): Promise<Switch>;
export async function send(request: OperationRequest | SwitchRequest): Promise<unknown> {
  const url = new URL(location.href);
  url.hash = "";
  const body = JSON.stringify(request);
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body }).catch(
    () => undefined,
  );
  if (response === undefined) throw new Error("The server does not answer.");
  const text = await response.text();
  if (!(response.headers.get("content-type") ?? "").startsWith("application/json")) throw new Error(text.trim());
  const answer = JSON.parse(text) as { error?: string };
  if (!response.ok) throw response.status === 400 ? new Mistake(answer.error) : new Error(answer.error);
  return answer;
}
