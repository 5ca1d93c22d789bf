import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type UserConfig } from "tsdown";

/** What a condition of package.json leads to. */
type Conditions = string | { readonly [condition: string]: Conditions };

interface Manifest {
  bin: Record<string, string>;
  imports: Record<string, Conditions>;
  exports: Record<string, string | { default: string }>;
}

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const manifest = JSON.parse(readFileSync(at("package.json"), "utf8")) as Manifest;

/** What package.json names is what is built: `./dist/a/b.js` comes from `src/a/b.ts` or `src/a/b/index.ts`. */
function entries(targets: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const target of targets) {
    const name = /^(?:\.\/)?dist\/(.+)\.js$/.exec(target)?.[1];
    if (name === undefined) continue;
    const source = [`src/${name}.ts`, `src/${name}/index.ts`].find((file) => existsSync(at(file)));
    if (source === undefined) console.warn(`package.json names dist/${name}.js, but there is no src/${name}.ts`);
    else found[name] = source;
  }
  return found;
}

const { bin, imports, exports } = manifest;
/** Entries of the package, where not all are built: `npm start` needs three, and no declarations. */
const only = process.env["TIDEGATE_ENTRIES"]?.split(" ");
const exported = Object.entries(exports)
  .filter(([path]) => only === undefined || only.includes(path))
  .map(([, target]) => (typeof target === "string" ? target : target.default));
const targetsOf = (conditions: Conditions): readonly string[] =>
  typeof conditions === "string" ? [conditions] : Object.values(conditions).flatMap(targetsOf);
const engines = ["#engine-host", "#layers"].flatMap((name) => targetsOf(imports[name] ?? {}));
const inside = only ? engines : [...Object.values(bin), ...targetsOf(imports)];

const PURE = "./dist/pure.js";

const PURE_HOSTS: Readonly<Record<string, string>> = {
  "#engine-host": at("src/engine/host-pure.ts"),
  "#layers": at("src/limiter/layers-none.ts"),
};

const shared: UserConfig = {
  target: "es2022",
  fixedExtension: false,
  sourcemap: false,
  hash: false,
  // Two builds write to one folder, which npm/scripts/build.mjs empties first.
  clean: false,
  logLevel: "warn",
  // One file per source file: a bundle contains only what its imports need.
  unbundle: true,
  outputOptions: ({ entryFileNames, ...options }) => ({
    ...options,
    // The declarations have them.
    comments: { annotation: true, legal: false, jsdoc: false },
    // Bundled libraries: npm packs no folder of the name node_modules.
    entryFileNames: (chunk) => {
      const name = chunk.name.replace(/^(.*\/)?node_modules\//, "bundled/").replace(/\.(lua|sql)$/, "");
      return typeof entryFileNames === "function"
        ? entryFileNames({ ...chunk, name })
        : (entryFileNames ?? "[name].js").replace("[name]", name);
    },
  }),
  inputOptions: (options) => ({
    ...options,
    resolve: { ...options.resolve, mainFields: ["module", "main"] },
  }),
  // The programs that run inside a database are files of their own language.
  loader: { ".lua": "text", ".sql": "text" },
};

const generated = "src/engine/generated";
/** Copied, as tsdown would write them otherwise than esbuild did. */
const GENERATED_JS = /\/generated\/\w+-pure\.js$/;

/** The ES modules: what bundlers take, and hosts other than Node.js. */
const modules: UserConfig = {
  ...shared,
  entry: entries([...exported.filter((target) => target !== PURE), ...inside]),
  format: "esm",
  platform: "neutral",
  dts: false,
  // The host is chosen where the package is used; the wasm is copied, at the same place relative to the hosts as in src.
  deps: {
    neverBundle: [
      /^#engine-host$/,
      /^#workers$/,
      /^#policy-host$/,
      /^#layers$/,
      /^cloudflare:/,
      /\.wasm(\?module)?$/,
      GENERATED_JS,
      /^node:/,
      /^@tidegate\//,
    ],
  },
  copy: only
    ? []
    : [
        { from: `${generated}/small.wasm`, to: "dist/engine/generated" },
        { from: `${generated}/policy_bg.wasm`, to: "dist/engine/generated" },
        { from: `${generated}/small-pure.js`, to: "dist/engine/generated" },
        { from: `${generated}/algebra-pure.js`, to: "dist/engine/generated" },
        { from: `${generated}/policy.schema.json`, to: "dist" },
        { from: "src/stores/redis/tidegate.lua", to: "dist/stores/redis" },
      ],
  hooks: {
    // The PostgreSQL migration as a file, for tools that take SQL.
    "build:done": async () => {
      if (only) return;
      const { migration } = (await import(new URL("dist/stores/postgres/migration.js", import.meta.url).href)) as {
        migration(): string;
      };
      writeFileSync(at("dist/postgres.sql"), migration());
    },
  },
};

/**
 * `tidegate/pure` for bundlers, as one file on its own host: with the other modules, a page would have its wasm as well.
 */
const pure: UserConfig = {
  ...modules,
  entry: entries(exported.filter((target) => target === PURE)),
  unbundle: false,
  copy: [],
  hooks: {},
  deps: { neverBundle: [GENERATED_JS] },
  // Not an alias, which tsconfig.json's path for Node.js precedes.
  plugins: [{ name: "pure", resolveId: (id) => PURE_HOSTS[id] }],
};

const libraries = entries(exported);

/** Declarations of the ES modules: TypeScript finds them beside the files, and there is one set of types. */
function declareModules(): void {
  for (const name of Object.keys(libraries)) {
    writeFileSync(at(`dist/${name}.d.ts`), `export * from "./${basename(name)}.cjs";\n`);
  }
  // Its own would export types of classes as if they were classes.
  writeFileSync(at("dist/pure.d.cts"), 'export * from "./index.cjs";\n');
  // With it, a limiter of another copy of the package would not fit, as pnpm installs one for each set of peers.
  for (const path of readdirSync(at("dist"), { recursive: true, encoding: "utf8" })) {
    if (!path.endsWith(".d.cts")) continue;
    const text = readFileSync(at(`dist/${path}`), "utf8");
    writeFileSync(at(`dist/${path}`), text.replace(/^\s*#private;\n/gm, ""));
  }
}

/**
 * CommonJS and the declarations: what Node.js loads, for `require` and `import` alike. So a process has one copy of the
 * package, whatever loads it, and `require` needs no support for ES modules.
 */
const commonjs: UserConfig = {
  ...shared,
  entry: libraries,
  format: "cjs",
  platform: "node",
  ...(only ? { dts: false } : { onSuccess: declareModules, dts: { sourcemap: false } }),
  deps: { neverBundle: [/^react$/, /^@tidegate\//] },
  alias: {
    "#engine-host": at("src/engine/host-node.ts"),
    "#layers": at("src/limiter/layers.ts"),
    "#policy-host": at("src/policies/host-inline.ts"),
    "#workers": at("src/stores/durable-object/base.ts"),
  },
};

export default defineConfig(exported.includes(PURE) ? [modules, pure, commonjs] : [modules, commonjs]);
