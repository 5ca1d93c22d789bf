/** The most steps that a word is looked for over. */
const FAR = 3;

/** Single steps (insert, leave out, replace, swap neighbours) from one word to the other; infinite where there are more. */
function steps(a: string, b: string, most: number): number {
  let same = 0;
  while (same < a.length && a[same] === b[same]) same++;
  const [c, d] = [a.slice(same), b.slice(same)];
  if (c === d) return 0;
  if (most === 0) return Infinity;
  const rest = (i: number, j: number): number => steps(c.slice(i), d.slice(j), most - 1);
  return 1 + Math.min(rest(1, 0), rest(0, 1), rest(1, 1), c[0] === d[1] && c[1] === d[0] ? rest(2, 2) : Infinity);
}

/** The word that was probably meant: at most a third of its letters differ, and three. */
export function nearest(written: string, words: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = FAR + 1;
  for (const word of words) {
    const far = steps(written.toLowerCase(), word.toLowerCase(), FAR);
    if (far < least && far * 3 <= Math.max(word.length, 3)) [best, least] = [word, far];
  }
  return best;
}

/** What ends an error's sentence where one of the known words was probably meant; nothing where none was. */
export function meant(written: unknown, words: readonly string[], quote: '"' | "`"): string {
  const word = typeof written === "string" ? nearest(written, words) : undefined;
  return word === undefined ? "" : `; did you mean ${quote}${word}${quote}?`;
}
