/** Lists that say the same thing in two places. */
import { matching, type Rule, type Tree } from "../tree.ts";

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly [condition: string]: string; default: string }>>;
  readonly typesVersions?: { readonly "*": Readonly<Record<string, readonly string[]>> };
}

const PACKAGE = "npm/tidegate/package.json";
const SOURCE = "npm/tidegate/src/";
const exportsOf = (tree: Tree): Manifest["exports"] =>
  (JSON.parse(tree.get(PACKAGE) ?? '{"exports":{}}') as Manifest).exports;

/** Entries of which the README's tables have no row: what they are for stands in the text around them. */
const WITHOUT_ROW = new Set(["./testing", "./http"]);

/**
 * An entry's conditions, in their order: bundlers and hosts without Node.js load the ES module, Node.js (with `require` or
 * `import`) the CommonJS file.
 */
const conditionsOf = (name: string): Readonly<Record<string, string>> => {
  const [module, commonjs] = [`./dist/${name}.js`, `./dist/${name}.cjs`];
  return { workerd: module, "react-native": module, module, require: commonjs, node: commonjs, default: module };
};

function everyEntryHasItsFile(tree: Tree): string[] {
  const manifest = JSON.parse(tree.get(PACKAGE) ?? "{}") as Manifest;
  return Object.entries(exportsOf(tree)).flatMap(([entry, target]) => {
    if (typeof target === "string") return [];
    const name = target.default.replace(/^\.\/dist\/(.*)\.js$/, "$1");
    const conditions = conditionsOf(name);
    if (JSON.stringify(target) !== JSON.stringify(conditions)) {
      return [`${PACKAGE}: ${entry} must be ${JSON.stringify(conditions)}`];
    }
    const [types] = manifest.typesVersions?.["*"][entry.slice(2)] ?? [];
    if (entry !== "." && types !== `./dist/${name}.d.cts`) {
      return [`${PACKAGE}: ${entry.slice(2)} of typesVersions must be ./dist/${name}.d.cts`];
    }
    const isThere = [`${name}.ts`, `${name}/index.ts`].some((file) => tree.has(SOURCE + file));
    return isThere ? [] : [`${PACKAGE}: ${entry} has no file ${name}.ts`];
  });
}

/** Stores and adapters are entries; parts that they share are in no table. */
function everyStoreAndAdapterIsAnEntry(tree: Tree): string[] {
  const names = new Set(
    Object.values(exportsOf(tree)).map((target) => (typeof target === "string" ? target : target.default)),
  );
  const parts =
    /\/(index|contract|memory|steps|swap|transactional|record|spread|level|turns|server-clock|addon-calls|addon-store)\.ts$/;
  const isStore = (path: string, text: string): boolean =>
    /^npm\/tidegate\/src\/stores\/[\w-]+\.ts$/.test(path) && !parts.test(path) && /@module/.test(text);
  const isAdapter = (path: string, text: string): boolean =>
    /^npm\/tidegate\/src\/middleware\/[\w-]+\.ts$/.test(path) && /@module/.test(text);
  return [...tree].flatMap(([path, text]) => {
    if (!isStore(path, text) && !isAdapter(path, text)) return [];
    const built = path.replace(SOURCE, "./dist/").replace(/\.ts$/, ".js");
    return names.has(built) ? [] : [`${path} is no entry of ${PACKAGE}`];
  });
}

function everyEntryIsInTheReadme(tree: Tree): string[] {
  const readme = tree.get("README.md") ?? "";
  const rows = readme
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .join("\n");
  const words = new Set([...rows.matchAll(/`(tidegate)?(\/[\w/-]+)`/g)].map(([, , path = ""]) => `.${path}`));
  const code = Object.entries(exportsOf(tree)).filter(([entry, target]) => entry !== "." && typeof target !== "string");
  const absent = code.map(([entry]) => entry).filter((entry) => !words.has(entry) && !WITHOUT_ROW.has(entry));
  const known = new Set(Object.keys(exportsOf(tree)));
  const gone = [...rows.matchAll(/`tidegate(\/[\w/-]+)`/g)]
    .map(([, path]) => `.${path}`)
    .filter((path) => !known.has(path));
  return [
    ...absent.map((entry) => `README.md has no row for ${entry} of ${PACKAGE}`),
    ...gone.map((entry) => `README.md has a row for ${entry}, which ${PACKAGE} has not`),
  ];
}

/** A store has a test that runs the store suite on it. */
function everyStoreRunsTheSuite(tree: Tree): string[] {
  const stores = Object.entries(exportsOf(tree))
    .filter(([, target]) => typeof target !== "string" && target.default.startsWith("./dist/stores/"))
    .map(([entry]) => entry.slice(2));
  const callers = matching(tree, /^(tests\/(?!house\/)|npm\/tidegate\/test\/).*\.(ts|js)$/).filter(([, text]) =>
    /storeSuite|report\.js/.test(text),
  );
  return (
    stores
      .filter((store) => !callers.some(([, text]) => new RegExp(`/${store}(\\.ts)?["']`).test(text)))
      // Inside a mutation there is no fake clock to hand a suite; tests/convex and tests/hosts/convex hold it instead.
      .filter((store) => store !== "convex")
      .map((store) => `${SOURCE}stores/${store}.ts has no test that runs storeSuite on it`)
  );
}

function everyExampleIsPointedTo(tree: Tree): string[] {
  const texts = matching(tree, /\.(md|ts|mjs)$/).filter(([path]) =>
    /^(README\.md|CONTRIBUTING\.md|tests\/(?!house\/)|npm\/)/.test(path),
  );
  // One file of each stands for the folder.
  const folders = new Map(matching(tree, /^examples\/[\w-]+\//).map(([path]) => [path.split("/")[1] as string, path]));
  return [...folders]
    .filter(([name]) => !texts.some(([, text]) => text.includes(`examples/${name}`) || text.includes(`"${name}"`)))
    .map(([, path]) => `${path} is run by no test, and named nowhere`);
}

/** The functions of crates/wasm that JavaScript sees. */
const WASM_EXPORT = /^#\[wasm_bindgen\]\n(?:#\[.*\n)*pub fn (\w+)/gm;

function everyWasmExportIsCalled(tree: Tree): string[] {
  const source = matching(tree, /^npm\/tidegate\/src\/.*\.ts$/).map(([, text]) => text);
  return matching(tree, /^crates\/wasm\/src\/.*\.rs$/).flatMap(([path, text]) =>
    [...text.matchAll(WASM_EXPORT)]
      .map(([, name]) => name as string)
      .filter((name) => !source.some((file) => file.includes(`wasm.${name}(`)))
      .map((name) => `${path} exports ${name}, which the package does not call`),
  );
}

const withExport = (types: string, entry: string, name: string) => ({
  [PACKAGE]: JSON.stringify({
    exports: { [entry]: conditionsOf(name) },
    typesVersions: { "*": { [entry.slice(2)]: [`./dist/${types}.d.cts`] } },
  }),
});
const store = "/**\n * State in a drawer.\n *\n * @module\n */\nexport {};\n";

export const tables: readonly Rule[] = [
  {
    name: "every entry of the package has its file, and its own types",
    check: everyEntryHasItsFile,
    broken: [withExport("stores/drawer", "./drawer", "stores/drawer"), withExport("http", "./redis", "stores/redis")],
  },
  {
    name: "every store and every adapter is an entry",
    check: everyStoreAndAdapterIsAnEntry,
    broken: [{ [`${SOURCE}stores/drawer.ts`]: store }, { [`${SOURCE}middleware/koa.ts`]: store }],
  },
  {
    name: "every entry has a row in the README, and every row an entry",
    check: everyEntryIsInTheReadme,
    broken: [
      { "README.md": "| `tidegate/redis` |\n" },
      { "README.md": null },
      withExport("http", "./nothing-like-it", "http"),
    ],
  },
  {
    name: "every store runs the store suite",
    check: everyStoreRunsTheSuite,
    broken: [
      { "npm/tidegate/src/stores/drawer.ts": store, ...withExport("stores/drawer", "./drawer", "stores/drawer") },
    ],
  },
  {
    name: "every example is run or named",
    check: everyExampleIsPointedTo,
    broken: [{ "examples/attic/main.js": "" }],
  },
  {
    name: "every export of the WebAssembly engine has a caller",
    check: everyWasmExportIsCalled,
    broken: [{ "crates/wasm/src/tables.rs": "#[wasm_bindgen]\n#[must_use]\npub fn unused() -> u32 {\n" }],
  },
];
