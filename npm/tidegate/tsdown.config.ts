import { existsSync, readFileSync } from "node:fs";
import { defineConfig } from "tsdown";

interface Manifest {
  bin: Record<string, string>;
  imports: Record<string, Record<string, string>>;
  exports: Record<string, string | { default: string }>;
}

const manifest = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8")) as Manifest;

/** What package.json names is what is built: `./dist/a/b.js` comes from `src/a/b.ts` or `src/a/b/index.ts`. */
function entries(): Record<string, string> {
  const { bin, imports, exports } = manifest;
  const named = [...Object.values(exports), ...Object.values(bin), ...Object.values(imports).flatMap(Object.values)];
  const found: Record<string, string> = {};
  for (const target of named) {
    const name = /^(?:\.\/)?dist\/(.+)\.js$/.exec(typeof target === "string" ? target : target.default)?.[1];
    if (name === undefined) continue;
    const source = [`src/${name}.ts`, `src/${name}/index.ts`].find((file) =>
      existsSync(new URL(file, import.meta.url)),
    );
    if (source === undefined) console.warn(`package.json names dist/${name}.js, but there is no src/${name}.ts`);
    else found[name] = source;
  }
  return found;
}

export default defineConfig({
  entry: entries(),
  format: "esm",
  platform: "neutral",
  target: "es2022",
  dts: { sourcemap: false },
  fixedExtension: false,
  sourcemap: false,
  // A file for each of the source's: whoever takes a part of the package brings along what that needs, and nothing beside.
  unbundle: true,
  hash: false,
  clean: true,
  logLevel: "warn",
  // Libraries that are bundled: npm packs no folder of the name node_modules.
  outputOptions: (options) => ({
    ...options,
    entryFileNames: ({ name }) =>
      `${name.replace(/^(.*\/)?node_modules\//, "bundled/").replace(/\.(lua|sql)$/, "")}.js`,
  }),
  inputOptions: (options) => ({
    ...options,
    resolve: { ...options.resolve, mainFields: ["module", "main"] },
  }),
  // The programs that run inside a database are files of their own language.
  loader: { ".lua": "text", ".sql": "text" },
  // The host is chosen where the package is used; the wasm, and the one file whose syntax only Deno reads, go along as
  // they are, at the same place relative to the hosts as in src.
  deps: {
    neverBundle: [
      /^#engine-host$/,
      /^#durable-object$/,
      /^#policy-host$/,
      /^cloudflare:/,
      /\.wasm$/,
      /\/wasm-source\.js$/,
      /\/generated\/pure\.js$/,
      /^node:/,
      /^@tidegate\//,
    ],
  },
  copy: [
    { from: "src/engine/generated/speed.wasm", to: "dist/engine/generated" },
    { from: "src/engine/generated/small.wasm", to: "dist/engine/generated" },
    { from: "src/engine/generated/policy_bg.wasm", to: "dist/engine/generated" },
    { from: "src/engine/generated/policy.schema.json", to: "dist" },
    { from: "src/engine/generated/wasm-source.js", to: "dist/engine/generated" },
    { from: "src/engine/generated/pure.js", to: "dist/engine/generated" },
  ],
});
