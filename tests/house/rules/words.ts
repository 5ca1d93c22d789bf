/** What must not be written in this repository. */
import type { Rule, Tree } from "../tree.ts";

/** The rules name what they forbid. */
const OURS = /^tests\/house\//;

const found = (tree: Tree, pattern: RegExp, why: string): string[] =>
  [...tree].flatMap(([path, text]) => {
    if (OURS.test(path)) return [];
    return text
      .split("\n")
      .flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1} ${why}: ${line.trim()}`] : []));
  });

/** Names for files without a noun of their own. */
const NO_NOUN = /(^|[/_.-])(utils?|helpers?|common|misc|managers?)([/_.-]|$)/i;
/** Apache's Common Log Format is called that. */
const NOUNS = new Set(["crates/replay/src/format/common.rs"]);

const LATER = /\b(TODO|FIXME|XXX)\b/;
/** Folders of one machine. Those of every system, such as /tmp and /usr, are allowed. */
const MACHINE = /(^|[\s"'`(=:])(\/home\/\w|\/Users\/\w|\/root\/|\/work\/|[A-Z]:\\Users\\)/;
/** The first line of a documentation comment that lost its second asterisk: to every tool it is an ordinary comment. */
const UNREAD = /^\s*\/\* +\* /;
/** An ignored test: biome reports those of test runners, and not Rust's. */
const LEFT_OUT = /^\s*#\[ignore/;

const say = (text: string, path = "npm/tidegate/src/words.ts") => ({ [path]: `${text}\n` });

export const words: readonly Rule[] = [
  {
    name: "a file is called by what is in it",
    check: (tree) =>
      [...tree.keys()].filter((path) => NO_NOUN.test(path) && !NOUNS.has(path)).map((path) => `${path} names no noun`),
    broken: [
      "npm/tidegate/src/utils.ts",
      "crates/core/src/helpers/one.rs",
      "tests/common/one.ts",
      "npm/tidegate/src/key-manager.ts",
    ].map((path) => say("export {};", path)),
  },
  {
    name: "nothing is left for later",
    check: (tree) => found(tree, LATER, "is left for later"),
    broken: [say("// TODO: more"), say("// FIXME", "crates/core/src/take.rs"), say("<!-- TODO -->", "README.md")],
  },
  {
    name: "no path of one machine",
    check: (tree) => found(tree, MACHINE, "has a path of somebody's machine"),
    broken: [
      say('const at = "/home/me/tidegate";'),
      say("cd /Users/me/tidegate", "CONTRIBUTING.md"),
      say("/root/x", ".ci/run"),
    ],
  },
  {
    name: "no test of Rust's is left out",
    check: (tree) => found(tree, LEFT_OUT, "is left out"),
    broken: [say("#[ignore]\nfn one() {}", "crates/core/tests/laws/corrupt.rs")],
  },
  {
    name: "a documentation comment begins as one, so that editors and declarations have it",
    check: (tree) => found(tree, UNREAD, "documents nothing"),
    broken: [
      say("/* * The least.\n * Of all.\n */\nexport const LEAST = 1;"),
      say("  /*   * Default 1.\n   */\n  least?: number;"),
    ],
  },
];
