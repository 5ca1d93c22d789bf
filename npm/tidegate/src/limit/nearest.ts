/** The most edits by which a word may differ from the one that was meant. */
const MOST = 3;

/**
 * The edits (insert, delete, replace, transpose neighbours) from one word to the other; infinite if there are more than
 * `most`.
 */
function edits(a: string, b: string, most: number): number {
  let same = 0;
  while (same < a.length && a[same] === b[same]) same++;
  const [c, d] = [a.slice(same), b.slice(same)];
  if (c === d) return 0;
  if (most === 0) return Infinity;
  const rest = (i: number, j: number): number => edits(c.slice(i), d.slice(j), most - 1);
  return 1 + Math.min(rest(1, 0), rest(0, 1), rest(1, 1), c[0] === d[1] && c[1] === d[0] ? rest(2, 2) : Infinity);
}

/**
 * The word that was probably meant: it differs by at most three edits, and at most one edit per three of its letters.
 */
export function nearest(written: string, words: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Infinity;
  for (const word of words) {
    const distance = edits(written.toLowerCase(), word.toLowerCase(), MOST);
    if (distance < least && distance * 3 <= Math.max(word.length, 3)) [best, least] = [word, distance];
  }
  return best;
}

/** The end of an error message if one of the known words was probably meant; otherwise empty. */
export function meant(written: unknown, words: readonly string[], quote: '"' | "`"): string {
  const word = typeof written === "string" && nearest(written, words);
  return word ? `; did you mean ${quote}${word}${quote}?` : "";
}
