/** Words of an early style that readers had to decode: how many are left in each area. Lower a ceiling after a cleanup. */
import { matching, type Rule, type Tree } from "../tree.ts";

const WORDS = /\b(?:tells?|told|nobody|whoever|asked)\b/gi;
/** Quotations, and the vocabulary of the spell checker and of this rule. */
const QUOTED = /^> .*$|“[^”]*”/gm;
const VOCABULARY = /^cspell\.json$|^tests\/house\/rules\/wording\.ts$/;

/** The most that an area may have. A file is in the first area whose pattern it matches. */
const AREAS: readonly (readonly [area: string, files: RegExp, most: number])[] = [
  ["documents", /\.md$/, 1],
  ["crates", /^crates\//, 0],
  ["npm/tidegate/src", /^npm\/tidegate\/src\//, 30],
  ["npm, the rest", /^npm\//, 25],
  ["tests/stores", /^tests\/stores\//, 10],
  ["tests, the rest", /^tests\//, 1],
  ["examples", /^examples\//, 0],
];

/** How often the words occur, by area. */
export function counts(tree: Tree): Map<string, { count: number; most: number; files: string[] }> {
  const found = new Map(AREAS.map(([area, , most]) => [area, { count: 0, most, files: [] as string[] }]));
  for (const [path, text] of matching(tree, /./)) {
    const area = VOCABULARY.test(path) ? undefined : AREAS.find(([, files]) => files.test(path))?.[0];
    const many = text.replace(QUOTED, "").match(WORDS)?.length ?? 0;
    const entry = area === undefined ? undefined : found.get(area);
    if (entry === undefined || many === 0) continue;
    entry.count += many;
    entry.files.push(`${path} (${many})`);
  }
  return found;
}

function tooMany(tree: Tree): string[] {
  return [...counts(tree)]
    .filter(([, { count, most }]) => count > most)
    .map(
      ([area, { count, most, files }]) =>
        `${area}: tell, told, nobody, whoever or asked ${count} times, at most ${most}: ${files.join(", ")}`,
    );
}

const many = (path: string) => ({ [path]: "// Whoever asked is told what nobody can tell.\n".repeat(1000) });

export const wording: readonly Rule[] = [
  {
    name: "words of the early style do not come back",
    check: tooMany,
    broken: [
      many("README.md"),
      many("crates/core/src/wording.rs"),
      many("npm/tidegate/src/wording.ts"),
      many("npm/scripts/wording.mjs"),
      many("tests/stores/wording.test.ts"),
      many("tests/site/wording.test.ts"),
      many("examples/wording/main.mjs"),
    ],
  },
];
