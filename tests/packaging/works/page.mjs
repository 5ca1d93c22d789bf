// The page "Works with" of the site, from the rows that results.json keeps.
import { readFileSync } from "node:fs";

export const RESULTS = new URL("results.json", import.meta.url);
export const PAGE = new URL("../../../npm/site/reference/works-with.md", import.meta.url);

/** @returns {import("./results.ts").Row[]} */
export const results = () => JSON.parse(readFileSync(RESULTS, "utf8"));

const cell = (text) => text.replaceAll("|", "\\|");

const head = (days) => `# Works with

Each row was built and run from the packed tarball, the last on ${days.at(-1)}. No tool needs a setting for Tidegate, except where a
row names one. [The tests](../../../tests/packaging/works) have the exact versions and commands,
[the results](../../../tests/packaging/works/results.json) each row's day.

| Tool or framework | What is built and run | Node.js |
|---|---|---|
`;

const FOOT = `
In a bundle for Node.js, the engine is part of the script. The native addon (\`tidegate/shared\`, \`tidegate/file\`) is a separate file.
Keep the package outside the bundle, for example with \`serverExternalPackages: ["tidegate"]\` in Next.js or \`external\` in esbuild, or
put the addon's package, such as \`@tidegate/linux-x64-gnu\`, into a \`node_modules\` beside the bundle
([test](../../../tests/packaging/platforms.test.ts)). Without the addon, \`shared()\` uses the thread's own memory and warns once.

On the edge runtime of Next.js and Vercel, which does not allow WebAssembly from bytes, the engine is plain JavaScript.

Stack traces lead to readable code without source maps: the files are not minified, and each has the path of its source:
\`dist/limiter/limiter.cjs\` is \`src/limiter/limiter.ts\` ([test](../../../tests/packaging/node.test.ts)).
`;

export function page(rows = results()) {
  const line = ({ name, does, node }) => `| ${cell(name)} | ${cell(does)} | ${node} |\n`;
  return head(rows.map(({ at }) => at).sort()) + rows.map(line).join("") + FOOT;
}
