/** Bundlers with the smallest configuration that a page needs. They are installed on demand. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const modules = fileURLToPath(new URL("../node_modules/", import.meta.url));

interface Vite {
  build(options: object): Promise<unknown>;
}
interface Rollup {
  rollup(options: object): Promise<{ write(options: object): Promise<unknown>; close(): Promise<void> }>;
}
type Webpack = (
  options: object,
  done: (
    error: Error | null,
    stats?: { hasErrors(): boolean; hasWarnings(): boolean; toString(how?: string): string },
  ) => void,
) => { close(done: () => void): void };

/** A file of an installed package, as a module. */
const load = async <T>(file: string): Promise<T> => (await import(pathToFileURL(join(modules, file)).href)) as T;

const vite = (name: string) => async (folder: string, out: string) => {
  const { build } = await load<Vite>(`${name}/dist/node/index.js`);
  await build({
    root: folder,
    configFile: false,
    logLevel: "error",
    build: {
      outDir: out,
      rollupOptions: { input: join(folder, "program.js"), output: { entryFileNames: "built.js" } },
    },
  });
};

/** Writes `built.js`, for a Worker, where no plugin reads wasm, as for Shopify's Oxygen. */
export async function viteForWorkers(name: string, folder: string, out: string, alias: object): Promise<void> {
  const { build } = await load<Vite>(`${name}/dist/node/index.js`);
  const conditions = ["worker", "workerd", "module", "browser", "production"];
  await build({
    root: folder,
    configFile: false,
    logLevel: "error",
    resolve: { alias },
    ssr: { noExternal: true, target: "webworker", resolve: { conditions } },
    build: {
      ssr: join(folder, "program.js"),
      outDir: out,
      rollupOptions: { output: { entryFileNames: "built.js" } },
    },
  });
}

async function runWebpack(options: object): Promise<string> {
  const run = createRequire(import.meta.url)(join(modules, "webpack")) as Webpack;
  return await new Promise((resolve, reject) => {
    const compiler = run({ mode: "production", ...options }, (error, stats) => {
      compiler.close(() => {
        if (error !== null || stats === undefined || stats.hasErrors()) reject(error ?? new Error(stats?.toString()));
        else resolve(stats.hasWarnings() ? stats.toString("errors-warnings") : "");
      });
    });
  });
}

async function webpack(folder: string, out: string): Promise<void> {
  const output = { path: out, filename: "built.js" };
  await runWebpack({ context: folder, entry: "./program.js", output, performance: false });
}

/** Writes `built.cjs`, for Node.js, and returns webpack's warnings. */
export async function webpackForNode(folder: string, out: string): Promise<string> {
  const output = { path: out, filename: "built.cjs" };
  return await runWebpack({ context: folder, entry: "./program.js", target: "node", output });
}

async function rollup(folder: string, out: string): Promise<void> {
  const { rollup: run } = await load<Rollup>("rollup/dist/es/rollup.js");
  const { nodeResolve } = await load<{ nodeResolve(options: object): unknown }>(
    "@rollup/plugin-node-resolve/dist/es/index.js",
  );
  const made = await run({ input: join(folder, "program.js"), plugins: [nodeResolve({ browser: true })] });
  await made.write({ file: join(out, "built.js"), format: "iife" });
  await made.close();
}

async function esbuild(folder: string, out: string): Promise<void> {
  const { build } = await import("esbuild");
  const outfile = join(out, "built.js");
  await build({ entryPoints: [join(folder, "program.js")], bundle: true, minify: true, outfile, logLevel: "error" });
}

/** Each writes `built.js`, for a page. */
export const BUNDLERS: Readonly<Record<string, (folder: string, out: string) => Promise<void>>> = {
  "vite 7": vite("vite7"),
  "vite 8": vite("vite8"),
  "webpack 5": webpack,
  Rollup: rollup,
  esbuild,
};
