/** The text of every file that is in git, or will be, by path. */
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export type Tree = ReadonlyMap<string, string>;

/** A house rule: the violations in a tree, each a sentence with the path. */
export interface Rule {
  readonly name: string;
  readonly check: (tree: Tree) => string[];
  /** Changes to the tree, each of which must be reported: a file's new text, or `null` for a deleted file. */
  readonly broken: readonly Readonly<Record<string, string | null>>[];
}

const TEXT = /\.(rs|toml|ts|tsx|mts|js|mjs|jsx|cjs|json|jsonc|md|lua|sql|css|html|svg|yml|yaml)$|^\.ci\/run$/;
/** Written by tools, and not read line by line. */
const BY_TOOLS = /(^|\/)(package-lock\.json|Cargo\.lock)$|^tests\/vectors\/|^tests\/bench\/results\.json$/;

/** The bytes of every file that is in git, or will be, by path. */
export function bytes(): ReadonlyMap<string, number> {
  const args = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
  const paths = execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 }).split("\0");
  const found = new Map<string, number>();
  for (const path of paths) {
    const stats = statSync(join(root, path), { throwIfNoEntry: false });
    if (stats?.isFile() === true) found.set(path, stats.size);
  }
  return found;
}

export function tree(): Tree {
  const paths = [...bytes().keys()].filter((path) => TEXT.test(path) && !BY_TOOLS.test(path));
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), "utf8")]));
}

/** The tree with some files changed. */
export function changed(tree: Tree, files: Readonly<Record<string, string | null>>): Tree {
  const other = new Map(tree);
  for (const [path, text] of Object.entries(files)) {
    if (text === null) other.delete(path);
    else other.set(path, text);
  }
  return other;
}

/** A function of a file that runs once for each path and text: a broken tree differs from the tree in one file. */
export function oncePerFile<T>(of: (path: string, text: string) => T): (path: string, text: string) => T {
  const made = new Map<string, T>();
  return (path, text) => {
    const id = `${path}\n${text}`;
    if (!made.has(id)) made.set(id, of(path, text));
    return made.get(id) as T;
  };
}

/** The paths that match, with their text. */
export const matching = (tree: Tree, pattern: RegExp): [string, string][] =>
  [...tree].filter(([path]) => pattern.test(path));
