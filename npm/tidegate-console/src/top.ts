/**
 * The most frequent keys of the last minutes, in bounded memory.
 *
 * Misra and Gries' summary, pruned by halves, as in the log replay: when there are more keys than there is room for, all
 * counts are reduced by the median, and keys at 0 are removed. A count is never above the true one, and at most the total
 * reduction below it. A reduction by `m` removes at least `m` from half of the counts, so after `n` keys the total
 * reduction is at most `2 n / room`.
 */

/** Counts by key. */
export class Summary {
  readonly #room: number;
  readonly counts: Map<string, number> = new Map();
  /** How far a count may be below the true one. */
  reduction = 0;

  constructor(room: number) {
    this.#room = room;
  }

  add(key: string): void {
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    if (this.counts.size > this.#room) this.#prune();
  }

  #prune(): void {
    const sorted = Uint32Array.from(this.counts.values()).sort();
    const median = sorted[sorted.length >> 1] as number;
    this.reduction += median;
    for (const [key, count] of this.counts) {
      if (count > median) this.counts.set(key, count - median);
      else this.counts.delete(key);
    }
  }
}

/** The first `n` keys of all summaries together, the most frequent first. The bounds of the summaries add up. */
export function leaders(summaries: readonly Summary[], n: number): { key: string; atLeast: number; atMost: number }[] {
  const counts = new Map<string, number>();
  for (const summary of summaries) {
    for (const [key, count] of summary.counts) counts.set(key, (counts.get(key) ?? 0) + count);
  }
  const reduction = summaries.reduce((sum, summary) => sum + summary.reduction, 0);
  return [...counts]
    .sort(([a, most], [b, least]) => least - most || (a < b ? -1 : 1))
    .slice(0, n)
    .map(([key, atLeast]) => ({ key, atLeast, atMost: atLeast + reduction }));
}
