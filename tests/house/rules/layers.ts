/** Which module may import which, and that no imports form a cycle. */
import { posix } from "node:path";
import ts from "typescript";
import { matching, oncePerFile, type Rule, type Tree } from "../tree.ts";
import { adaptersOf } from "./tables.ts";

const SOURCE = "npm/tidegate/src/";

/** The modules of the package. A file is in the first module whose pattern it matches. */
const MODULES: readonly (readonly [module: string, files: RegExp])[] = [
  ["limit", /^limit\//],
  ["engine", /^engine\//],
  ["lease options", /^limiter\/lease\/options\.ts$/],
  ["layers", /^limiter\/(layers(-none)?|resilience(-sync)?|fallback|outages|lease\/\w+)\.ts$/],
  [
    "store parts",
    /^stores\/(index|connecting|contract|failure|steps|swap(\/[\w-]+)?|table|transactional|record|sharded|keyed-queue|server-clock|addon-store|programs\.d)\.ts$/,
  ],
  ["memory", /^stores\/memory\.ts$/],
  ["store $1", /^stores\/([\w-]+?)(?:\.ts$|\/)/],
  ["limiter", /^limiter\//],
  ["http", /^http\//],
  ["drop-in", /^middleware\/drop-in\//],
  ["gate", /^middleware\//],
  ["policies", /^policies\//],
  ["client", /^client\//],
  ["react", /^react\//],
  ["observe", /^observe\//],
  ["testing", /^testing\//],
  ["cli", /^cli\//],
  ["front", /^(index|pure)\.ts$/],
];

const LIMIT = ["limit", "engine"];
const STORE = [...LIMIT, "lease options", "layers", "store parts"];
const LIMITER = [...STORE, "memory", "limiter"];

/** What each may import beside itself. A module without a row may import nothing of the package. */
const MAY: Readonly<Record<string, readonly string[]>> = {
  limit: ["engine"],
  engine: ["limit"],
  "lease options": ["limit"],
  layers: [...LIMIT, "lease options", "store parts", "memory"],
  "store parts": [...LIMIT, "lease options", "layers"],
  memory: STORE,
  store: [...STORE, "memory", "hash"],
  limiter: LIMITER,
  http: LIMIT,
  // An adapter imports the gate and no other adapter, and re-exports the stores for other libraries.
  middleware: [...LIMITER, "http", "gate", "drop-in"],
  "drop-in": [...LIMITER, "http", "gate"],
  gate: [...LIMITER, "http"],
  policies: [...LIMITER, "http", "gate"],
  client: LIMITER,
  // A page loads what it projects by, and no limiter.
  react: LIMIT,
  observe: LIMITER,
  testing: LIMITER,
  cli: [...LIMIT, "front", "http", "policies", "store"],
  front: LIMITER,
};

/** Packages and Node.js's own modules, by who may name them. */
const OUTSIDE: readonly (readonly [module: RegExp, files: RegExp])[] = [
  [
    /^#engine-host$|^#layers$|^#policy-host$|^#workers$/,
    /^(engine\/(engine|algebra|distributed)|limiter\/limiter|policies\/check|stores\/(durable-object|dynamodb|postgres|redis|sqlite|workers-kv))\.ts$/,
  ],
  [/^#workers$|^cloudflare:workers$/, /^stores\/durable-object\//],
  [/^node:(fs|module)$/, /^engine\/(addon|host-node|host-pure)\.ts$/],
  [/^node:url$/, /^stores\/file\.ts$/],
  [/^node:stream$/, /^client\/node\.ts$/],
  [/^@opentelemetry\/api$/, /^observe\/metrics\.ts$/],
  [/^node:/, /^cli\//],
  [/^react$/, /^react\/index\.ts$/],
  [/^node:http2?$/, /^middleware\/(express|node)\.ts$/],
  // Optional peers: all but Nest's for their types alone.
  [/^express$/, /^middleware\/express\.ts$/],
  [/^fastify$/, /^middleware\/fastify\.ts$/],
  [/^hono$/, /^middleware\/hono\.ts$/],
  [/^@aws-sdk\/client-dynamodb$/, /^stores\/dynamodb\.ts$/],
  [/^mongodb$/, /^stores\/mongodb\.ts$/],
  [/^koa$/, /^middleware\/koa\.ts$/],
  [/^@nestjs\//, /^middleware\/nest(-context)?\.ts$/],
];

function moduleOf(file: string, adapters: readonly string[]): { kind: string; module: string } {
  const [, adapter = ""] = /^middleware\/(.+)\.ts$/.exec(file) ?? [];
  if (adapters.includes(adapter)) return { kind: "middleware", module: `middleware ${adapter}` };
  for (const [name, pattern] of MODULES) {
    const found = pattern.exec(file);
    if (found === null) continue;
    const module = name.replace("$1", found[1] ?? "");
    return { kind: name.replace(" $1", ""), module };
  }
  return { kind: "nowhere", module: "nowhere" };
}

/** Each name once: a file that adds to a module's types names it twice. */
const importsOf = oncePerFile((_path, text) => [
  ...new Set(ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => fileName)),
]);

function strangers(tree: Tree): string[] {
  const adapters = adaptersOf(tree);
  return matching(tree, /^npm\/tidegate\/src\/.*\.tsx?$/).flatMap(([path, text]) => {
    const file = path.slice(SOURCE.length);
    const from = moduleOf(file, adapters);
    if (from.kind === "nowhere") return [`${path} is in no module of tests/house/rules/layers.ts`];
    return importsOf(path, text).flatMap((name) => {
      if (!name.startsWith(".")) {
        const isAllowed = OUTSIDE.some(([module, files]) => module.test(name) && files.test(file));
        return isAllowed ? [] : [`${path} imports ${name}, which OUTSIDE of layers.ts does not allow`];
      }
      const target = posix.join(posix.dirname(file), name);
      // One function of http, which is no more than a hash.
      const to = target === "http/sha256.ts" ? { kind: "hash", module: "hash" } : moduleOf(target, adapters);
      // What Node.js loads, which a tracer of files has to find.
      if (to.module === from.module || /^engine\/generated\/|\.(lua|sql)$|^index\.cjs$/.test(target)) return [];
      const allowed = MAY[from.kind]?.includes(to.kind) === true || (to.kind === "hash" && from.kind === "http");
      return allowed ? [] : [`${path} (${from.module}) imports ${target} (${to.module}): see MAY of layers.ts`];
    });
  });
}

/** Packages that the service may name, by file. It reaches tidegate by its entries alone, as any user. */
const OF_SERVICE: readonly (readonly [module: RegExp, files: RegExp])[] = [
  [/^tidegate(\/[\w-]+)?$|^node:/, /./],
  [/^hono(\/|$)|^@hono\/node-server$/, /^(app|context|forward-auth|problem|server)\.ts$/],
  [/^zod$/, /^(schemas|routes|openapi|policies)\.ts$/],
  [/^prom-client$/, /^metrics\.ts$/],
  [/^protobufjs\/light\.js$/, /^rls\.ts$/],
  // Loaded where they are needed.
  [/^@grpc\/grpc-js$/, /^grpc\.ts$/],
  [/^@opentelemetry\/api$/, /^metrics\.ts$/],
  [/^(ioredis|pg)$/, /^clients\.ts$/],
  [/^tidegate-console$/, /^console\.ts$/],
];

function strangersOfService(tree: Tree): string[] {
  return matching(tree, /^npm\/tidegate-serve\/src\/.*\.ts$/).flatMap(([path, text]) => {
    const file = posix.basename(path);
    const outside = importsOf(path, text).filter((name) => !/^\.\/[\w-]+\.ts$/.test(name));
    const known = (name: string) => OF_SERVICE.some(([module, files]) => module.test(name) && files.test(file));
    return outside.filter((name) => !known(name)).map((name) => `${path} imports ${name}: see OF_SERVICE of layers.ts`);
  });
}

/** Files that import each other, directly or through others; types count. */
function cycles(tree: Tree): string[] {
  const files = matching(tree, /^npm\/tidegate(-serve)?\/src\/.*\.tsx?$/);
  const imports = new Map(
    files.map(([path, text]) => [
      path,
      importsOf(path, text)
        .filter((name) => name.startsWith("."))
        .map((name) => posix.join(posix.dirname(path), name)),
    ]),
  );
  const finished = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const from = trail.indexOf(path);
    if (from >= 0) found.push(`${[...trail.slice(from), path].join(" imports ")}: a cycle`);
    if (from >= 0 || finished.has(path)) return;
    for (const next of imports.get(path) ?? []) visit(next, [...trail, path]);
    finished.add(path);
  };
  for (const path of imports.keys()) visit(path, []);
  return found;
}

/** What each crate is made of, besides what it is tested with. The core has no more than the hash of its keys. */
const CRATES: Readonly<Record<string, readonly string[]>> = {
  core: ["xxhash-rust"],
  table: ["tidegate-core", "siphasher"],
  policy: ["tidegate-core", "serde", "serde_json", "strsim", "wasm-bindgen"],
  "policy-wasm": ["tidegate-policy", "serde-wasm-bindgen", "js-sys", "talc", "wasm-bindgen"],
  wire: ["tidegate-core", "tidegate-table"],
  wasm: ["tidegate-core", "tidegate-table", "tidegate-wire", "atomic_refcell", "slab", "talc", "wasm-bindgen"],
  file: ["tidegate-core", "tidegate-table", "heed", "libc", "rustix", "xxhash-rust"],
  // The second opinion must not share a line with the first.
  oracle: ["num-bigint", "num-integer", "num-rational", "num-traits", "serde_json", "xxhash-rust"],
};

function crates(tree: Tree): string[] {
  return Object.entries(CRATES).flatMap(([crate, allowed]) => {
    const path = `${crate === "oracle" ? "tests" : "crates"}/${crate}/Cargo.toml`;
    let section = "";
    return (tree.get(path) ?? "").split("\n").flatMap((line) => {
      section = /^\[(.*)\]/.exec(line)?.[1] ?? section;
      const [, name = ""] = /^([\w-]+)(?:\.workspace)? *=/.exec(line) ?? [];
      const depends = section === "dependencies" || /^target\..*\.dependencies$/.test(section);
      return name === "" || !depends || allowed.includes(name)
        ? []
        : [`${path} depends on ${name}: see CRATES of layers.ts`];
    });
  });
}

const at = (file: string, name: string) => ({ [SOURCE + file]: `import { x } from "${name}";\n` });

export const layers: readonly Rule[] = [
  {
    name: "a module of the package imports only the modules below it",
    check: strangers,
    broken: [
      at("stores/deno-kv.ts", "./convex.ts"),
      at("stores/convex.ts", "../middleware/gate.ts"),
      at("stores/redis/key.ts", "../../limiter/limiter.ts"),
      at("middleware/express.ts", "./fastify.ts"),
      at("middleware/gate.ts", "./express.ts"),
      at("limit/limit.ts", "../limiter/limiter.ts"),
      at("react/view.ts", "../limiter/limiter.ts"),
      at("client/queue.ts", "../stores/redis.ts"),
      at("limit/config.ts", "node:fs"),
      at("client/queue.ts", "lodash"),
      at("attic.ts", "./limit/limit.ts"),
      { [`${SOURCE}http/key.ts`]: 'export type Late = typeof import("../limiter/limiter.ts");\n' },
    ],
  },
  {
    name: "the service uses the package's entries, and each library in its files",
    check: strangersOfService,
    broken: [
      { "npm/tidegate-serve/src/policies.ts": 'import { select } from "../../tidegate/src/policies/policies.ts";\n' },
      { "npm/tidegate-serve/src/policies.ts": 'import { Hono } from "hono";\n' },
      { "npm/tidegate-serve/src/clients.ts": 'const pg = await import("postgres");\n' },
    ],
  },
  {
    name: "no imports form a cycle, those of types included",
    check: cycles,
    broken: [
      {
        [`${SOURCE}limit/duration.ts`]: 'import type { Config } from "./config.ts";\n',
        [`${SOURCE}limit/config.ts`]: 'import { MINUTE } from "./duration.ts";\n',
      },
    ],
  },
  {
    name: "a crate depends on what is written down for it",
    check: crates,
    broken: [
      { "crates/core/Cargo.toml": '[dependencies]\nserde = "1"\n' },
      { "tests/oracle/Cargo.toml": "[dependencies]\ntidegate-core.workspace = true\n" },
      { "crates/table/Cargo.toml": "[target.'cfg(unix)'.dependencies]\nlibc = { version = \"0.2\" }\n" },
    ],
  },
];
