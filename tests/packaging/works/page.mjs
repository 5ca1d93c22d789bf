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
Keep the package outside the bundle, for example with \`external\` in esbuild, or put the addon's package, such as
\`@tidegate/linux-x64-gnu\`, into a \`node_modules\` beside the bundle ([test](../../../tests/packaging/platforms.test.ts)). Next.js
needs neither where \`next start\` runs in the folder that it was built in. Without the addon, \`shared()\` uses the thread's own
memory and warns once.

On the edge runtime of Next.js and Vercel, which does not allow WebAssembly from bytes, the engine is plain JavaScript.

Stack traces lead to readable code without source maps: the files are not minified, and each has the path of its source:
\`dist/limiter/limiter.cjs\` is \`src/limiter/limiter.ts\` ([test](../../../tests/packaging/node.test.ts)).

## Older versions

Tried once, on 2026-11-30 with Node.js 20.20, and not in the tests: builds for production that get 30 parallel requests, test files, and
decisions on PostgreSQL.

| tool | works from | older versions |
|---|---|---|
| Next.js | 14.2.9 | do not read all of ES2022: [the error](../frameworks/nextjs.md#what-goes-wrong) |
| React Native | 0.79 | need settings: [React Native](../start/react-native.md) |
| Vite | 4.2 | do not read \`imports\` of \`package.json\`: \`failed to resolve import "#layers"\`. Nuxt 3.0 has such a Vite |
| webpack | 5.36, for Node.js 5.54 | the same, with the error "Final loader (unknown) didn't return a Buffer or String" |
| esbuild | 0.16 | 0.14.54 and 0.15 build pages and CommonJS, but no ES modules for Node.js that run |

These work too, in the oldest version that was tried: SvelteKit 1.0, Astro 3.0, Nuxt 3.4, Remix 2.0, React Router 7.0, Rollup 3.0,
rspack 1.0, Parcel 2.0, Rolldown 1.3, ncc 0.34, tsup 8.0, Jest 28 (whose own fake timers fail on Node.js 20), Vitest 1.0, Mocha 10, AVA
5, GraphQL Yoga 3.0, Apollo Server 4.0, tRPC 10.45, Hapi 20.0, AdonisJS 6, Elysia 1.0, Knex 0.95, Kysely 0.26, TypeORM 0.3, Sequelize
6.1, single executable applications of Node.js 20, and pnpm 8 with \`hoist=false\`.

## Other hosts and tools

Also tried once, on 2026-11-30, and not in the tests: each but React decided in memory, with the numbers of Node.js to the last bit.

| kind | works |
|---|---|
| engines | GJS 1.74, the shell of JavaScriptCore 2.50, and in Python mini-racer 0.14 (V8) and PythonMonkey 1.4 (SpiderMonkey), each with a bundle for pages |
| Node.js 20 to 26 | \`--frozen-intrinsics\` and \`--disallow-code-generation-from-strings\`, with the addon too. Under \`--jitless\`, and while a startup snapshot is built (\`--build-snapshot\`), WebAssembly is absent: make \`import "tidegate/pure"\` the first import |
| Node.js 20 | \`lockdown()\` of SES 2.3, \`node:vm\` contexts, workers with \`resourceLimits\` |
| executables | single executable applications of Node.js 20 to 26, and \`bun build --compile --bytecode\` |
| package managers | npm with \`--install-strategy=linked\` and \`nested\`, Yarn 1, Yarn 4 with each \`nodeLinker\`, pnpm 9 and 10 with each \`node-linker\`. With \`node-linker=pnp\`, pnpm 9 does not find entries such as \`tidegate/shared\` |
| compilers | Babel and SWC to ES5, Terser and UglifyJS with unsafe options, Oxc, javascript-obfuscator. Closure Compiler refuses private fields |
| React | React Compiler 1.0, and Preact 11 with \`preact/compat\`: \`useRateLimit\` counts down |
`;

export function page(rows = results()) {
  const line = ({ name, does, node }) => `| ${cell(name)} | ${cell(does)} | ${node} |\n`;
  return head(rows.map(({ at }) => at).sort()) + rows.map(line).join("") + FOOT;
}
