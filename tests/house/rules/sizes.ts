import type { Rule, Tree } from "../tree.ts";

/** Usually 50 to 300 lines: a file is one thought that is read as a whole. */
const MOST = 400;

const SOURCE = /^(crates|npm|examples|tests)\/.*\.(rs|ts|tsx|js|jsx|mjs|lua|sql)$/;

const lines = (text: string): number => text.split("\n").length - 1;

function tooLong(tree: Tree): string[] {
  return [...tree]
    .filter(([path, text]) => SOURCE.test(path) && lines(text) > MOST)
    .map(([path, text]) => `${path} has ${lines(text)} lines, and may have ${MOST}`);
}

const long = (many: number): string => "// a line\n".repeat(many);

export const sizes: readonly Rule[] = [
  {
    name: "a source file has at most 400 lines",
    check: tooLong,
    broken: [
      { "npm/tidegate/src/long.ts": long(MOST + 1) },
      { "crates/core/src/long.rs": long(MOST + 1) },
      { "npm/tidegate/src/stores/redis/long.lua": long(MOST + 1) },
      { "tests/house/long.test.ts": long(MOST + 1) },
    ],
  },
];
