/** Regular expressions of the package run in linear time on any input: many of these inputs are written by clients. */
import { analyse } from "scslre";
import ts from "typescript";
import { matching, oncePerFile, type Rule, type Tree } from "../tree.ts";

const SOURCE = /^npm\/tidegate\/src\/(?!engine\/generated\/).*\.tsx?$/;

/** The regular expressions of a file, and the calls that compile one from a string. */
function patterns(path: string, text: string): { at: string; source: string; flags: string }[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: { at: string; source: string; flags: string }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      const [, source = "", flags = ""] = /^\/(.*)\/([a-z]*)$/s.exec(node.text) ?? [];
      found.push({ at: `${path}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}`, source, flags });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/**
 * Where a pattern takes more than linear time: quadratic or exponential backtracking, or a search that starts again at
 * each character (`move`), which a sticky pattern does not do.
 */
function slow({ at, source, flags }: { at: string; source: string; flags: string }): string[] {
  const { reports } = analyse({ source, flags });
  return reports
    .filter(({ type }) => !(type === "Move" && flags.includes("y")))
    .map(
      ({ type, exponential }) =>
        `${at} has ${exponential ? "exponential" : "polynomial"} backtracking (${type}): /${source}/`,
    );
}

const slowIn = oncePerFile((path, text) => patterns(path, text).flatMap(slow));

const compiled = (tree: Tree): string[] =>
  matching(tree, SOURCE).flatMap(([path, text]) =>
    /\bRegExp\(/.test(text) ? [`${path} compiles a pattern that this rule cannot read`] : [],
  );

const write = (pattern: string) => ({ "npm/tidegate/src/http/pattern.ts": `export const PATTERN = ${pattern};\n` });

export const linear: readonly Rule[] = [
  {
    name: "a regular expression takes linear time",
    check: (tree) => [...compiled(tree), ...matching(tree, SOURCE).flatMap(([path, text]) => slowIn(path, text))],
    broken: [
      // The pattern that read `Forwarded`: a header of 15,900 blanks took 0.6 s.
      write(String.raw`/[ \t]*(?:([^\s=;,"]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?[ \t]*(?:;|$)/y`),
      write("/^(a+)+$/"),
      write(String.raw`/\s+$/`),
      write(String.raw`/^\d+\d+x/`),
      write(`new RegExp("a")`),
    ],
  },
];
