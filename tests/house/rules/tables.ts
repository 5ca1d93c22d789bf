/** Lists that say the same thing in two places. */
import { fresh, PAGES } from "../../../npm/scripts/stores.mjs";
import { matching, type Rule, type Tree } from "../tree.ts";

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly [condition: string]: string; default: string }>>;
}

const PACKAGE = "npm/tidegate/package.json";
const SOURCE = "npm/tidegate/src/";
const exportsOf = (tree: Tree): Manifest["exports"] =>
  (JSON.parse(tree.get(PACKAGE) ?? '{"exports":{}}') as Manifest).exports;

/** The built files of the entries. */
const builtFiles = (tree: Tree): string[] =>
  Object.values(exportsOf(tree)).map((target) => (typeof target === "string" ? target : target.default));

/** The names of the adapters: the entries whose file is in the folder `middleware`. */
export const adaptersOf = (tree: Tree): string[] =>
  builtFiles(tree).flatMap((path) => /^\.\/dist\/middleware\/(.+)\.js$/.exec(path)?.[1] ?? []);

/** Entries of which the README's tables have no row: the text around them has what they are for, or only our packages use them. */
const WITHOUT_ROW = new Set(["./testing", "./http", "./cli"]);

/**
 * An entry's conditions, in their order: bundlers and hosts without Node.js load the ES module, Node.js (with `require` or
 * `import`) the CommonJS file.
 */
const conditionsOf = (name: string): Readonly<Record<string, string>> => {
  const [module, commonjs] = [`./dist/${name}.js`, `./dist/${name}.cjs`];
  return { workerd: module, "react-native": module, module, require: commonjs, node: commonjs, default: module };
};

function everyEntryHasItsFile(tree: Tree): string[] {
  return Object.entries(exportsOf(tree)).flatMap(([entry, target]) => {
    if (typeof target === "string") return [];
    const name = target.default.replace(/^\.\/dist\/(.*)\.js$/, "$1");
    const conditions = conditionsOf(name);
    if (JSON.stringify(target) !== JSON.stringify(conditions)) {
      return [`${PACKAGE}: ${entry} must be ${JSON.stringify(conditions)}`];
    }
    const isThere = [`${name}.ts`, `${name}/index.ts`].some((file) => tree.has(SOURCE + file));
    return isThere ? [] : [`${PACKAGE}: ${entry} has no file ${name}.ts`];
  });
}

/** Stores and adapters are entries; only an entry has `@module`. */
function everyStoreAndAdapterIsAnEntry(tree: Tree): string[] {
  const built = builtFiles(tree);
  return matching(tree, /^npm\/tidegate\/src\/(stores|middleware)\/[\w-]+\.ts$/).flatMap(([path, text]) => {
    if (!text.includes("@module")) return [];
    const own = path.replace(SOURCE, "./dist/").replace(/(\/index)?\.ts$/, ".js");
    return built.includes(own) ? [] : [`${path} is no entry of ${PACKAGE}: give it one in exports`];
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

interface Row {
  readonly name: string;
  readonly entry: string;
  readonly suite: string;
  readonly example?: string;
  readonly page?: string;
}

const STORES = "tests/stores/stores.json";

/** The playground's code to copy. */
const SNIPPETS = "examples/playground/src/model/snippets.ts";

/** A store is an entry with a row, and a row has a suite, a page, a snippet, and the example that it names. */
function everyStoreIsARow(tree: Tree): string[] {
  const rows = JSON.parse(tree.get(STORES) ?? "[]") as Row[];
  const entries = Object.entries(exportsOf(tree))
    .filter(([, target]) => typeof target !== "string" && target.default.startsWith("./dist/stores"))
    .map(([entry]) => `tidegate${entry.slice(1)}`);
  const known = new Set([...entries, "tidegate"]);
  const paths = [...tree.keys()];
  const has = (path: string): boolean => paths.some((one) => one === path || one.startsWith(`${path}/`));
  const isRun = ({ suite }: Row): boolean =>
    [...tree].some(
      ([path, text]) => (path === suite || path.startsWith(`${suite}/`)) && /storeSuite|report\.js|convex/.test(text),
    );
  return [
    ...entries
      .filter((entry) => !rows.some((row) => row.entry === entry))
      .map((entry) => `${STORES} has no row for ${entry} of ${PACKAGE}`),
    ...rows.flatMap((row) => {
      const { name, entry, example, page = name } = row;
      const wrong = [];
      if (!known.has(entry)) wrong.push(`${STORES}: ${entry} is no entry of ${PACKAGE}`);
      if (!isRun(row)) wrong.push(`${STORES}: no test in ${row.suite} runs storeSuite on ${entry}`);
      if (example !== undefined && !has(example)) wrong.push(`${STORES}: ${entry} has no ${example}`);
      if (!has(`npm/site/stores/${page}.md`)) wrong.push(`${STORES}: ${entry} has no page npm/site/stores/${page}.md`);
      if (tree.get(SNIPPETS)?.includes(`"${entry}"`) !== true && entry !== "tidegate/store")
        wrong.push(`${STORES}: ${entry} has no code in ${SNIPPETS}`);
      return wrong;
    }),
  ];
}

/** An adapter has its tests, a strict app that compiles against the packed package, a page, and code in the playground. */
function everyAdapterIsTested(tree: Tree): string[] {
  const pages = matching(tree, /^npm\/site\/frameworks\//).map(([, text]) => text);
  return adaptersOf(tree).flatMap((name) => {
    const test = `npm/tidegate/test/middleware/${name}.test.ts`;
    const entry = `${PACKAGE}: the adapter ${name}`;
    const imported = `from "tidegate/${name}";`;
    const lines: readonly (readonly [file: string, line: string])[] = [
      ["npm/tidegate/test/middleware/misspelt.test.ts", `from "../../src/middleware/${name}.ts";`],
      ["tests/packaging/frameworks.test.ts", `\n  ${name}: {`],
      ["examples/playground/src/model/frameworks.ts", imported],
    ];
    return [
      ...(tree.has(test) ? [] : [`${entry} has no ${test}`]),
      ...(pages.some((text) => text.includes(imported)) ? [] : [`${entry} has no page npm/site/frameworks/${name}.md`]),
      ...lines
        .filter(([file, line]) => tree.get(file)?.includes(line) !== true)
        .map(([file, line]) => `${entry} has no ${line.trim()} in ${file}`),
    ];
  });
}

/** The tables of stores are what npm/scripts/stores.mjs writes. */
function storesAreFresh(tree: Tree): string[] {
  return PAGES.flatMap(({ file, make }) => {
    const text = tree.get(file) ?? "";
    const remedy = "run node npm/scripts/stores.mjs, which writes it between its markers";
    return fresh(text, make) === text ? [] : [`${file}: the table of stores is absent or stale; ${remedy}`];
  });
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

/** A folder of tests is a project of vitest, which a step runs: tests in another one would be run by nothing. */
function everyFolderOfTestsIsRun(tree: Tree): string[] {
  const files = matching(tree, /^tests\/[\w-]+\/.*\.test\.ts$/).map(([path]) => path);
  const folders = new Map(files.map((path) => [path.split("/")[1] as string, path]));
  return [...folders].flatMap(([name, path]) =>
    Object.entries({ "vitest.config.ts": `"${name}"`, "npm/scripts/steps.mjs": `vitest("${name}"` })
      .filter(([file, text]) => tree.get(file)?.includes(text) !== true)
      .map(([file, text]) => `${path} is not run: ${file} has no ${text}`),
  );
}

/** The functions of crates/wasm that JavaScript sees. */
const WASM_EXPORT = /^#\[wasm_bindgen\]\n(?:#\[.*\n)*pub fn (\w+)/gm;

function everyWasmExportIsCalled(tree: Tree): string[] {
  const source = matching(tree, /^npm\/tidegate\/src\/.*\.ts$/).map(([, text]) => text);
  return matching(tree, /^crates\/wasm\/src\/.*\.rs$/).flatMap(([path, text]) =>
    [...text.matchAll(WASM_EXPORT)]
      .map(([, name]) => name as string)
      .filter((name) => !source.some((file) => new RegExp(`wasm\\.${name}\\b`).test(file)))
      .map((name) => `${path} exports ${name}, which the package does not call`),
  );
}

const withExport = (entry: string, name: string) => ({
  [PACKAGE]: JSON.stringify({ exports: { [entry]: conditionsOf(name) } }),
});
const store = "/**\n * State in a drawer.\n *\n * @module\n */\nexport {};\n";

export const tables: readonly Rule[] = [
  {
    name: "every entry of the package has its file",
    check: everyEntryHasItsFile,
    broken: [
      withExport("./drawer", "stores/drawer"),
      { [PACKAGE]: JSON.stringify({ exports: { "./redis": { default: "./dist/stores/redis.js" } } }) },
    ],
  },
  {
    name: "every store and every adapter is an entry",
    check: everyStoreAndAdapterIsAnEntry,
    broken: [{ [`${SOURCE}stores/drawer.ts`]: store }, { [`${SOURCE}middleware/elysia.ts`]: store }],
  },
  {
    name: "every entry has a row in the README, and every row an entry",
    check: everyEntryIsInTheReadme,
    broken: [{ "README.md": "| `tidegate/redis` |\n" }, { "README.md": null }, withExport("./nothing-like-it", "http")],
  },
  {
    name: "every store is a row of stores.json, with a suite, a page and a snippet",
    check: everyStoreIsARow,
    broken: [
      withExport("./drawer", "stores/drawer"),
      { [STORES]: "[]" },
      { [STORES]: JSON.stringify([{ entry: "tidegate/drawer", suite: "tests/stores/redis" }]) },
      { [STORES]: JSON.stringify([{ entry: "tidegate/redis", suite: "tests/stores/drawer" }]) },
      { [STORES]: JSON.stringify([{ entry: "tidegate/redis", suite: "tests/stores/redis", page: "drawer" }]) },
      { [SNIPPETS]: "" },
    ],
  },
  {
    name: "every adapter has tests, a strict app, a page and a snippet",
    check: everyAdapterIsTested,
    broken: [
      withExport("./elysia", "middleware/elysia"),
      { "npm/tidegate/test/middleware/koa.test.ts": null },
      { "tests/packaging/frameworks.test.ts": "" },
      { "npm/tidegate/test/middleware/misspelt.test.ts": "" },
      { "npm/site/frameworks/koa.md": "" },
      { "examples/playground/src/model/frameworks.ts": "" },
    ],
  },
  {
    name: "the tables of stores are fresh",
    check: storesAreFresh,
    broken: [
      { "README.md": "<!-- stores:begin -->\n| a |\n<!-- stores:end -->\n" },
      { "npm/site/stores/index.md": "no table\n" },
    ],
  },
  {
    name: "every example is run or named",
    check: everyExampleIsPointedTo,
    broken: [{ "examples/attic/main.js": "" }],
  },
  {
    name: "every folder of tests is run",
    check: everyFolderOfTestsIsRun,
    broken: [{ "tests/attic/attic.test.ts": "" }],
  },
  {
    name: "every export of the WebAssembly engine has a caller",
    check: everyWasmExportIsCalled,
    broken: [{ "crates/wasm/src/tables.rs": "#[wasm_bindgen]\n#[must_use]\npub fn unused() -> u32 {\n" }],
  },
];
