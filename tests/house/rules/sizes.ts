import type { Rule, Tree } from "../tree.ts";

/** A file is a room with one noun: whoever opens it reads it whole. */
const MOST = 250;
/** Tests and measurements may tell more cases of one noun. */
const MOST_IN_TESTS = 400;

const SOURCE = /^(crates|npm|examples)\/.*\.(rs|ts|tsx|js|jsx|mjs|lua|sql)$/;
const TEST = /^(npm\/tidegate\/test\/|tests\/|crates\/[^/]+\/(tests|examples)\/).*\.(rs|ts|tsx|js|mjs)$/;

/** With the reason why it is one room. */
const LONGER: Readonly<Record<string, string>> = {
  "crates/oracle/src/history.rs": "one builder, of which each method writes one kind of step of a vector",
};

const lines = (text: string): number => text.split("\n").length - 1;

function tooLong(tree: Tree): string[] {
  return [...tree].flatMap(([path, text]) => {
    const most = TEST.test(path) ? MOST_IN_TESTS : SOURCE.test(path) ? MOST : Number.POSITIVE_INFINITY;
    if (lines(text) <= most || path in LONGER) return [];
    return [`${path} has ${lines(text)} lines, and may have ${most}: which two nouns are in it?`];
  });
}

/** An exception that is none any more goes. */
function needless(tree: Tree): string[] {
  return Object.keys(LONGER)
    .filter((path) => lines(tree.get(path) ?? "") <= MOST)
    .map((path) => `${path} is no longer too long, or gone: take it from the exceptions`);
}

const long = (many: number): string => "// a line\n".repeat(many);

export const sizes: readonly Rule[] = [
  {
    name: "a file has 250 lines at most, a test 400",
    check: tooLong,
    broken: [
      { "npm/tidegate/src/long.ts": long(MOST + 1) },
      { "crates/core/src/long.rs": long(MOST + 1) },
      { "npm/tidegate/src/stores/redis/long.lua": long(MOST + 1) },
      { "tests/house/long.test.ts": long(MOST_IN_TESTS + 1) },
    ],
  },
  {
    name: "an exception is one",
    check: needless,
    broken: [{ "crates/oracle/src/history.rs": long(MOST) }, { "crates/oracle/src/history.rs": null }],
  },
];
