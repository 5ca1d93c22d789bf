/** The guide for contributors names only what exists. */
import type { Rule, Tree } from "../tree.ts";

const GUIDE = "CONTRIBUTING.md";
/** A path of the repository; one with a place for a name, or a star, stands for several. */
const PATH = /`((?:\.ci|\.github|crates|examples|npm|tests)\/[^`\s<*]*)`/g;
/** Files that are not in git, or that {@link Tree} does not have. */
const NOT_IN_TREE = /\/generated\/|^tests\/(vectors\/|packaging\/frameworks\/|bench\/results\.json$)/;
const SCRIPT = /`npm (?:run )?(start|test|(?<=run )[\w:]+)/g;
const PROJECT = /vitest run --project (\w+)/g;

const all = (text: string, pattern: RegExp): string[] => [
  ...new Set(Array.from(text.matchAll(pattern), ([, found = ""]) => found)),
];

function existing(tree: Tree): string[] {
  const text = tree.get(GUIDE) ?? "";
  const paths = [...tree.keys()];
  const isThere = (path: string): boolean =>
    NOT_IN_TREE.test(path) || tree.has(path) || paths.some((other) => other.startsWith(path.replace(/\/?$/, "/")));
  const { scripts = {} } = JSON.parse(tree.get("package.json") ?? "{}") as { scripts?: Record<string, string> };
  const projects = tree.get("vitest.config.ts") ?? "";
  return [
    ...all(text, PATH)
      .filter((path) => !isThere(path))
      .map((path) => `${GUIDE} names ${path}, which does not exist`),
    ...all(text, SCRIPT)
      .filter((name) => !Object.hasOwn(scripts, name))
      .map((name) => `${GUIDE} names the script ${name}, which package.json does not have`),
    ...all(text, PROJECT)
      .filter((name) => !projects.includes(`"${name}"`))
      .map((name) => `${GUIDE} names the project ${name}, which vitest.config.ts does not have`),
  ];
}

export const contributing: readonly Rule[] = [
  {
    name: "the guide for contributors names only what exists",
    check: existing,
    broken: [
      { [GUIDE]: "See `tests/peers/list.json`.\n" },
      { [GUIDE]: "Run `npm run bom`.\n" },
      { [GUIDE]: "Run `npx vitest run --project attic`.\n" },
      { "tests/peers/peers.json": null },
      { "package.json": "{}" },
      { "vitest.config.ts": "" },
    ],
  },
];
