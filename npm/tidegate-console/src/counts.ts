/** What a limiter decided in the last ten minutes, in memory that no caller can grow. */
import type { Config, Decision } from "tidegate";
import type { DecisionEvent } from "tidegate/observe";
import type { ConsoleKeys } from "./keys.ts";
import { leaders, Summary } from "./top.ts";
import { type Denial, type Denials, type LimitFigures, SPAN, type TopKey } from "./wire.ts";

/** Names of limits with their own counts beside those that are defined; further ones are counted together. */
const MOST_OTHER_NAMES = 100;
/** Denials in one event of the stream, which sends four events a second; no more are kept. */
const MOST_DENIALS = 50;
/** Each minute has its own summary: old minutes are forgotten as a whole. */
const MINUTES = SPAN / 60;
/** Keys in a minute's summary: a count is too low by at most 1/256 of the minute's denials. */
const ROOM = 512;
const SHOWN_KEYS = 15;

type Series = ReturnType<typeof seriesOf>;

/** The counts of one limit: a ring of seconds. */
function seriesOf(index: number, name: string | null) {
  /** Of the store's last decision: a reload of policies changes it. A local limit in its place has a fraction of the numbers. */
  let latest: Config | undefined;
  /** The epoch s of each place in the ring. */
  const seconds = new Float64Array(SPAN).fill(Number.NaN);
  const [granted, denied, degraded] = [new Uint32Array(SPAN), new Uint32Array(SPAN), new Uint32Array(SPAN)];

  function add(second: number, { ok, degraded: isDegraded, policy }: Decision): void {
    const place = second % SPAN;
    if (seconds[place] !== second) {
      seconds[place] = second;
      for (const counts of [granted, denied, degraded]) counts[place] = 0;
    }
    const counts = ok ? granted : denied;
    counts[place] = (counts[place] as number) + 1;
    if (isDegraded) degraded[place] = (degraded[place] as number) + 1;
    if (name !== null && !(isDegraded && latest)) latest = policy;
  }

  /** The counts of these seconds; `degraded` is of the whole ring. */
  function figures(from: number, to: number): LimitFigures {
    const since = (first: number, counts: Uint32Array): number[] =>
      Array.from({ length: to - first + 1 }, (_, i) => {
        const place = (first + i) % SPAN;
        return seconds[place] === first + i ? (counts[place] as number) : 0;
      });
    return {
      name,
      policy: latest && policyText(latest),
      granted: since(from, granted),
      denied: since(from, denied),
      degraded: since(to - SPAN + 1, degraded).reduce((sum, count) => sum + count, 0),
    };
  }

  return { index, name, add, figures };
}

const UNITS = Object.entries({ d: 86_400_000, h: 3_600_000, min: 60_000, s: 1000 });

function durationText(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms % size === 0) ?? ["ms", 1];
  return `${ms / size} ${unit}`;
}

/** A limit in a few words, from a decision's policy or a value's config. */
export function policyText({ kind, rate, period, capacity = rate }: Config): string {
  // A decision's policy has the period in ms; a config of `getValue` has it as well.
  const per = typeof period === "number" ? durationText(period) : period;
  return `${kind}: ${rate} per ${per}${capacity === rate ? "" : `, capacity ${capacity}`}`;
}

/** The calls that take tokens: a check is counted if it is followed by one of them. */
const TAKES: ReadonlySet<DecisionEvent["operation"]> = new Set(["limit", "limitAll", "limitMany"]);

/** Counts the events of a limiter. */
export class Counts {
  /** The number of denials so far, which is the id of the last one. */
  denied = 0;
  /** Epoch ms; of the first request if Workers made the console, which have no time outside of requests. */
  #since: number;
  readonly #keys: ConsoleKeys;
  readonly #now: () => number;
  readonly #series: Series[];
  readonly #byName: Map<string, Series>;
  readonly #mostNames: number;
  #others: Series | undefined;
  /** The denied keys of each epoch minute. */
  readonly #minutes = Array.from({ length: MINUTES }, () => ({ minute: Number.NaN, summary: new Summary(ROOM) }));
  readonly #denials: Denial[] = [];

  constructor(keys: ConsoleKeys, now: () => number) {
    const { names } = keys;
    this.#keys = keys;
    this.#now = now;
    this.#since = now();
    this.#series = names.map((name, index) => seriesOf(index, name));
    this.#byName = new Map(names.map((name, index) => [name, this.#series[index] as Series]));
    this.#mostNames = names.length + MOST_OTHER_NAMES;
  }

  readonly add = ({ operation, name, key, count, decision: enforced, all }: DecisionEvent): void => {
    if (!TAKES.has(operation)) return;
    // Nothing was taken, as another limit denied the request.
    if (all?.ok === false && enforced.ok) return;
    // In shadow mode, what the limit decided.
    const decision = enforced.shadow === undefined ? enforced : { ...enforced, ...enforced.shadow };
    const at = this.#now();
    this.#since ||= at;
    const series = this.#of(name);
    series.add(Math.floor(at / 1000), decision);
    if (decision.ok) return;
    this.#summary(Math.floor(at / 60_000)).add(`${series.index}:${key ?? ""}`);
    const { retryAfter = null, degraded = false } = decision;
    const id = ++this.denied;
    const shown = key === undefined ? null : this.#textOf(name, key);
    this.#denials[id % MOST_DENIALS] = { id, at, name, key: shown, count, retryAfter, degraded };
  };

  get since(): number {
    this.#since ||= this.#now();
    return this.#since;
  }

  /** The names of the limits whose keys can be read and changed. */
  get defined(): readonly string[] {
    return this.#keys.names;
  }

  /** The text of a key; the key itself if the application's function throws: it must end no decision, and no timer of a stream. */
  #textOf(name: string, key: string): string {
    try {
      return this.#keys.text(name, key);
    } catch {
      return key;
    }
  }

  #of(name: string): Series {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    if (this.#byName.size === this.#mostNames) {
      this.#others ??= this.#add(null);
      return this.#others;
    }
    const series = this.#add(name);
    this.#byName.set(name, series);
    return series;
  }

  #add(name: string | null): Series {
    const series = seriesOf(this.#series.length, name);
    this.#series.push(series);
    return series;
  }

  #summary(minute: number): Summary {
    const slot = this.#minutes[minute % MINUTES] as { minute: number; summary: Summary };
    if (slot.minute !== minute) Object.assign(slot, { minute, summary: new Summary(ROOM) });
    return slot.summary;
  }

  /** The counts of each second since `after`, which is an epoch s, at most of the last ten minutes. */
  figures(after: number): { now: number; limits: LimitFigures[]; top: TopKey[] } {
    const now = this.#now();
    const to = Math.floor(now / 1000);
    const from = Math.max(to - SPAN + 1, Math.min(after, to));
    return { now, limits: this.#series.map((series) => series.figures(from, to)), top: this.#top(now) };
  }

  #top(now: number): TopKey[] {
    const minute = Math.floor(now / 60_000);
    const recent = this.#minutes.filter((slot) => slot.minute > minute - MINUTES && slot.minute <= minute);
    return leaders(
      recent.map(({ summary }) => summary),
      SHOWN_KEYS,
    ).map(({ key: entry, atLeast, atMost }) => {
      const colon = entry.indexOf(":");
      const name = this.#series[Number(entry.slice(0, colon))]?.name ?? null;
      const key = entry.slice(colon + 1);
      return { name, key: key === "" ? null : this.#textOf(name ?? "", key), atLeast, atMost };
    });
  }

  /** The newest denials after the one with this id. */
  denials(after: number): Denials {
    const first = Math.max(after + 1, this.denied - MOST_DENIALS + 1);
    const denials = Array.from(
      { length: Math.max(this.denied - first + 1, 0) },
      (_, i) => this.#denials[(first + i) % MOST_DENIALS] as Denial,
    );
    return { denials, skipped: this.denied - after - denials.length };
  }
}
