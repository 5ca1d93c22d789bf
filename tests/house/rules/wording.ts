/** Words of an early style that readers had to decode. */
import { matching, type Rule, type Tree } from "../tree.ts";

const WORDS = /\b(?:tells?|told|nobody|whoever|asked)\b/gi;
/** Quotations, and the user of Unix. */
const QUOTED = /^> .*$|“[^”]*”|"nobody"/gm;
/** The vocabulary of the spell checker, and this rule. */
const VOCABULARY = /^cspell\.json$|^tests\/house\/rules\/wording\.ts$/;

function wordsOfAnEarlyStyle(tree: Tree): string[] {
  return [...matching(tree, /./)]
    .filter(([path]) => !VOCABULARY.test(path))
    .flatMap(([path, text]) =>
      (text.replace(QUOTED, "").match(WORDS) ?? []).map((word) => `${path} has the word "${word}"`),
    );
}

const one = (path: string) => ({ [path]: "// Whoever asked is told what nobody can tell.\n" });

export const wording: readonly Rule[] = [
  {
    name: "words of the early style do not come back",
    check: wordsOfAnEarlyStyle,
    broken: [one("README.md"), one("crates/core/src/wording.rs"), one("npm/tidegate/src/wording.ts")],
  },
];
