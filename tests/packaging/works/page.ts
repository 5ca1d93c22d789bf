// The page "Works with" of the site, from the rows that works.test.ts builds and runs.
import { TOOLS } from "./tools.ts";

const cell = (text: string): string => text.replaceAll("|", "\\|");

const HEAD = `# Works with

Every release is packed and used as below; [the test](../../../tests/packaging/works/tools.ts) has the exact versions and commands.
No tool needs a setting for Tidegate, except where a row names one.

| Tool | What is built and run |
|---|---|
`;

const FOOT = `
In a bundle for Node.js, the engine is part of the script. The native addon (\`tidegate/shared\`, \`tidegate/file\`) is a file of its own:
keep the package outside the bundle, for example \`serverExternalPackages: ["tidegate"]\` in Next.js or \`external\` in esbuild. Without
it, \`shared()\` uses the thread's own memory and warns once.

On the edge runtime of Next.js and Vercel, which allows no WebAssembly from bytes, the engine is plain JavaScript.
`;

export function page(): string {
  return HEAD + TOOLS.map(({ name, does }) => `| ${cell(name)} | ${cell(does)} |\n`).join("") + FOOT;
}
