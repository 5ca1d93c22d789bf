/** A test that fails has failed: no runner runs it again. */
import ts from "typescript";
import { matching, oncePerFile, type Rule, type Tree } from "../tree.ts";

const RUNNER = /^(test|it|describe|bench)\b/;

/** Where a file gives vitest a `retry`: the options of a test, of a suite, or of the configuration. */
const retried = oncePerFile((path, text) => {
  if (!/\bretry\b/.test(text)) return [];
  const isConfig = path.endsWith("vitest.config.ts");
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true);
  const found: string[] = [];
  const isOfRunner = ({ parent }: ts.Node): boolean =>
    isConfig ||
    (ts.isCallExpression(parent) &&
      (RUNNER.test(parent.expression.getText()) || /\bsetConfig$/.test(parent.expression.getText())));
  const visit = (node: ts.Node): void => {
    if (ts.isObjectLiteralElement(node) && node.name?.getText() === "retry" && isOfRunner(node.parent)) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart());
      found.push(`${path}:${line + 1} runs a test again that failed`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
});

/** The flags, settings and actions by which a runner repeats what failed. */
const COMMANDS = /--(retry|retries|flaky)\b|^\s*retries\s*=|\/retry@|\bretr(y|ies):/m;

const check = (tree: Tree): string[] => [
  ...matching(tree, /(\.test\.tsx?|^vitest\.config\.ts|^tests\/.*\.ts)$/).flatMap(([path, text]) =>
    retried(path, text),
  ),
  ...matching(tree, /^(\.ci\/run|\.config\/nextest\.toml|\.github\/.*\.ya?ml|(.*\/)?package\.json)$/)
    .filter(([, text]) => COMMANDS.test(text))
    .map(([path]) => `${path} runs again what failed`),
];

export const retries: readonly Rule[] = [
  {
    name: "no runner repeats a test that failed",
    check,
    broken: [
      { "vitest.config.ts": "export default { test: { retry: 2 } };\n" },
      { "tests/stores/a.test.ts": 'test("a", { retry: 1 }, () => {});\n' },
      { "tests/stores/b.ts": 'describe.each([1])("b", { retry: 1 }, () => {});\n' },
      { "tests/stores/c.test.ts": "vi.setConfig({ retry: 1 });\n" },
      { ".config/nextest.toml": "[profile.default]\nretries = 2\n" },
      { ".ci/run": "npx vitest run --retry=2\n" },
      { ".github/workflows/a.yml": "      - uses: nick-fields/retry@v3\n" },
    ],
  },
];
