// API pages from the doc comments, as Markdown for the site: one folder for each entry of the package, under its name.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Application, Converter, makeRecursiveVisitor, ReflectionKind } from "typedoc";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const { exports } = JSON.parse(readFileSync(at("../tidegate/package.json"), "utf8"));

/** As the build finds it: `dist/a.js` is made from `src/a.ts` or `src/a/index.ts`. */
const source = (file) => {
  const path = file.replace("./dist/", "").replace(".js", "");
  return existsSync(at(`../tidegate/src/${path}.ts`)) ? `${path}.ts` : `${path}/index.ts`;
};

/** The source of each entry, by the name that it is imported by. */
const entries = new Map(
  Object.entries(exports)
    .filter(([, to]) => to.default !== undefined)
    .map(([entry, to]) => [`tidegate${entry.slice(1)}`, source(to.default)]),
);

const app = await Application.bootstrapWithPlugins({
  entryPoints: [...entries.values()].map((source) => at(`../tidegate/src/${source}`)),
  tsconfig: at("../tidegate/tsconfig.json"),
  basePath: at("../tidegate/src"),
  plugin: ["typedoc-plugin-markdown", "typedoc-vitepress-theme", "typedoc-plugin-missing-exports"],
  // A type that an entry's functions name, and does not export, has its fields on the page too.
  placeInternalsInOwningModule: true,
  docsRoot: at("."),
  out: at("api"),
  readme: "none",
  name: "API",
  // `npm test` has checked them.
  skipErrorChecking: true,
  disableSources: true,
  excludeInternal: true,
  excludePrivate: true,
  excludeProtected: true,
  // Such as what an error inherits from JavaScript's.
  excludeExternals: true,
  router: "module",
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useCodeBlocks: true,
  parametersFormat: "table",
  interfacePropertiesFormat: "table",
  indexFormat: "table",
  expandObjects: true,
  // A page starts with what its entry is for; types come last.
  groupOrder: ["Functions", "Variables", "Classes", "Interfaces", "Type Aliases", "*"],
  sidebar: { autoConfiguration: true, format: "vitepress", pretty: false, collapsed: true },
  logLevel: "Warn",
});
app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
  // It names a module by its file, and one in an index.ts by its folder.
  const names = new Map([...entries].map(([name, source]) => [source.replace(/(.)(\/index)?\.ts$/, "$1"), name]));
  for (const module of project.getChildrenByKind(ReflectionKind.Module)) {
    const name = names.get(module.name);
    if (name === undefined) throw new Error(`${module.name} is no entry of the package`);
    module.name = name;
  }
});
const children = (project) =>
  project.getChildrenByKind(ReflectionKind.Module).flatMap((module) => module.children ?? []);
const shown = new Set();
// What entries export, before the plugin adds the rest.
app.converter.on(
  Converter.EVENT_RESOLVE_BEGIN,
  ({ project }) => children(project).forEach((it) => void shown.add(it)),
  2e9,
);
// It adds the types of private members and of stores' inner parts too. Those stay that a function or a public type names.
app.converter.on(
  Converter.EVENT_RESOLVE_BEGIN,
  ({ project }) => {
    const visitor = makeRecursiveVisitor({
      reference({ reflection }) {
        if (!reflection?.kindOf?.(ReflectionKind.Interface | ReflectionKind.TypeAlias) || shown.has(reflection)) return;
        shown.add(reflection);
        visit(reflection);
      },
    });
    const visit = (reflection) => {
      for (const type of [reflection.type, ...(reflection.extendedTypes ?? [])]) type?.visit(visitor);
      reflection.traverse((it) => void visit(it));
    };
    for (const it of [...shown]) if (!it.kindOf(ReflectionKind.Class)) visit(it);
    for (const it of children(project)) if (!shown.has(it)) project.removeReflection(it);
  },
  -1e9,
);
/** The function that an entry is for: of its own name, or one of these. */
const MAIN = [
  "defineLimits",
  "rateLimit",
  "transactional",
  "definePolicies",
  "useRateLimit",
  "throttle",
  "limitNodeStream",
  "rateLimitHeaders",
  "spend",
  "adaptiveRate",
  "storeSuite",
];
const camel = (entry) => entry.replace(/^.*\//, "").replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
// After typedoc has made its groups.
app.converter.on(
  Converter.EVENT_RESOLVE_END,
  ({ project }) => {
    for (const module of project.getChildrenByKind(ReflectionKind.Module)) {
      const functions = module.groups?.find(({ title }) => title === "Functions")?.children ?? [];
      const main = [camel(module.name), ...MAIN].find((name) => functions.some((it) => it.name === name));
      functions.sort((a, b) => Number(b.name === main) - Number(a.name === main));
    }
  },
  -1000,
);
const project = await app.convert();
if (project === undefined) process.exit(1);
await app.generateOutputs(project);
// A link in a comment that leads nowhere is a warning.
if (app.logger.hasErrors() || app.logger.hasWarnings()) process.exit(1);
