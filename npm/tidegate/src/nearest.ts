/** Single steps (insert, leave out, replace, swap neighbours) that turn one word into the other. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let steps = Math.min(
        (row[j] as number) + 1,
        (next[j - 1] as number) + 1,
        (row[j - 1] as number) + (same ? 0 : 1),
      );
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) steps = Math.min(steps, (before[j - 2] as number) + 1);
      next.push(steps);
    }
    before = row;
    row = next;
  }
  return row[b.length] as number;
}

/** The word that was probably meant: at most a third of its letters differ. */
export function nearest(written: string, words: readonly string[]): string | undefined {
  const ranked = words
    .map((word) => ({ word, steps: distance(written.toLowerCase(), word.toLowerCase()) }))
    .sort((a, b) => a.steps - b.steps);
  const [best] = ranked;
  return best !== undefined && best.steps * 3 <= Math.max(best.word.length, 3) ? best.word : undefined;
}

/** What ends an error's sentence where one of the known words was probably meant; nothing where none was. */
export function meant(written: unknown, words: readonly string[], quote: '"' | "`"): string {
  const word = typeof written === "string" && written.length <= 64 ? nearest(written, words) : undefined;
  return word === undefined ? "" : `; did you mean ${quote}${word}${quote}?`;
}
