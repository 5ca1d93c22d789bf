/** Who may know whom. */
import { posix } from "node:path";
import ts from "typescript";
import { matching, type Rule, type Tree } from "../tree.ts";

const SOURCE = "npm/tidegate/src/";

/** The rooms of the package. A file is in the first room whose pattern it matches. */
const ROOMS: readonly (readonly [room: string, files: RegExp])[] = [
  ["words", /^(adaptive|duration|errors|nearest|decision|config|codec|jitter)\.ts$/],
  ["limit", /^(limit|evaluate|store)\.ts$/],
  ["engine", /^engine\//],
  ["lease options", /^lease\/options\.ts$/],
  ["store parts", /^stores\/(transactional|record|spread|level|turns|server-clock|addon-calls|addon-store)\.ts$/],
  ["memory", /^stores\/memory\.ts$/],
  ["store $1", /^stores\/([\w-]+?)(?:\.ts$|\/)/],
  [
    "limiter",
    /^(limiter|call-options|arguments|asked|defined|fallback|outages|resilience|resilience-sync)\.ts$|^lease\//,
  ],
  ["http", /^http(\.ts$|\/)/],
  ["middleware $1", /^middleware\/(express|fastify|hono|fetch|node|nest)\.ts$/],
  ["drop-in", /^middleware\/drop-in\//],
  ["gate", /^middleware\//],
  ["policies", /^policies(\.ts$|\/)/],
  ["budget", /^budget\.ts$/],
  ["client", /^client(\.ts$|\/)/],
  ["react", /^react(\.ts$|\/)/],
  ["observe", /^observe(\.ts$|\/)/],
  ["testing", /^testing\//],
  ["cli", /^cli\//],
  ["front", /^(index|pure)\.ts$/],
];

const LIMIT = ["words", "limit", "engine"];
const STORE = [...LIMIT, "lease options", "store parts"];
const LIMITER = [...STORE, "memory", "limiter"];

/** What each may import beside itself. What stands for none may import nothing of ours. */
const MAY: Readonly<Record<string, readonly string[]>> = {
  words: LIMIT,
  // `tidegate/store` is for people who write a store, and hands `transactional` on.
  limit: ["words", "engine", "lease options", "store parts"],
  engine: ["words"],
  "lease options": ["words"],
  "store parts": LIMIT,
  memory: LIMIT,
  store: [...STORE, "memory", "hash"],
  limiter: LIMITER,
  http: LIMIT,
  // An adapter knows the gate and no other adapter; the stores for other libraries it hands on.
  middleware: [...LIMIT, "limiter", "http", "gate", "drop-in"],
  "drop-in": [...LIMIT, "limiter", "http", "gate"],
  gate: [...LIMIT, "limiter", "http"],
  policies: [...LIMITER, "http", "gate"],
  // What was set aside is settled as the gate settles it.
  budget: [...LIMIT, "limiter", "gate"],
  client: [...LIMIT, "limiter"],
  // A page brings along what it projects by, and no limiter.
  react: LIMIT,
  observe: [...LIMIT, "limiter"],
  testing: [...LIMIT, "limiter"],
  cli: [...LIMIT, "front", "http", "policies"],
  front: [...LIMITER],
};

/** Packages and Node.js's own modules, by who may name them. */
const OUTSIDE: readonly (readonly [module: RegExp, files: RegExp])[] = [
  [/^#engine-host$|^#policy-host$|^#durable-object$/, /^(engine\/engine|policies\/check|stores\/durable-object)\.ts$/],
  [/^#durable-object$|^cloudflare:workers$/, /^stores\/durable-object\//],
  [/^node:(fs|module)$/, /^engine\/(addon|host-node|host-pure)\.ts$/],
  [/^node:url$/, /^stores\/file\.ts$/],
  [/^node:stream$/, /^client\/node\.ts$/],
  [/^node:diagnostics_channel$/, /^observe\/channel\.ts$/],
  [/^@opentelemetry\/api$/, /^observe\/metrics\.ts$/],
  [/^node:/, /^cli\//],
  [/^react$/, /^react\.ts$/],
];

function roomOf(file: string): { kind: string; room: string } {
  for (const [name, pattern] of ROOMS) {
    const found = pattern.exec(file);
    if (found === null) continue;
    const room = name.replace("$1", found[1] ?? "");
    return { kind: name.replace(" $1", ""), room };
  }
  return { kind: "nowhere", room: "nowhere" };
}

export const importsOf = (text: string): string[] =>
  ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => fileName);

function strangers(tree: Tree): string[] {
  return matching(tree, /^npm\/tidegate\/src\/.*\.tsx?$/).flatMap(([path, text]) => {
    const file = path.slice(SOURCE.length);
    const from = roomOf(file);
    if (from.kind === "nowhere") return [`${path} is in no room of tests/house/rules/layers.ts`];
    return importsOf(text).flatMap((name) => {
      if (!name.startsWith(".")) {
        const isAllowed = OUTSIDE.some(([module, files]) => module.test(name) && files.test(file));
        return isAllowed ? [] : [`${path} imports ${name}`];
      }
      const target = posix.join(posix.dirname(file), name);
      // One function of http, which is no more than a hash.
      const to = target === "http/sha256.ts" ? { kind: "hash", room: "hash" } : roomOf(target);
      if (to.room === from.room || /^engine\/generated\/|\.(lua|sql)$/.test(target)) return [];
      const allowed = MAY[from.kind]?.includes(to.kind) === true || (to.kind === "hash" && from.kind === "http");
      return allowed ? [] : [`${path} (${from.room}) imports ${target} (${to.room})`];
    });
  });
}

/** What each crate is made of, besides what it is tested with. The core has no more than the hash of its keys. */
const CRATES: Readonly<Record<string, readonly string[]>> = {
  core: ["xxhash-rust"],
  table: ["tidegate-core", "siphasher"],
  policy: ["tidegate-core", "serde", "serde_json"],
  "policy-wasm": ["tidegate-policy", "serde", "serde-wasm-bindgen", "js-sys", "wasm-bindgen"],
  wasm: ["tidegate-core", "tidegate-table", "atomic_refcell", "talc", "wasm-bindgen"],
  file: ["tidegate-core", "tidegate-table", "heed", "libc", "xxhash-rust"],
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
      const isModelled = section.includes("shuttle");
      return name === "" || !depends || isModelled || allowed.includes(name) ? [] : [`${path} depends on ${name}`];
    });
  });
}

const at = (file: string, name: string) => ({ [SOURCE + file]: `import { x } from "${name}";\n` });

export const layers: readonly Rule[] = [
  {
    name: "a room of the package imports only what it may know",
    check: strangers,
    broken: [
      at("stores/deno-kv.ts", "./convex.ts"),
      at("stores/convex.ts", "../middleware/gate.ts"),
      at("stores/redis/key.ts", "../../limiter.ts"),
      at("middleware/express.ts", "./fastify.ts"),
      at("middleware/gate.ts", "./express.ts"),
      at("limit.ts", "./limiter.ts"),
      at("react/view.ts", "../limiter.ts"),
      at("client/queue.ts", "../stores/memory.ts"),
      at("config.ts", "node:fs"),
      at("client/queue.ts", "lodash"),
      at("attic.ts", "./limit.ts"),
      { [`${SOURCE}http/key.ts`]: 'export type Late = typeof import("../limiter.ts");\n' },
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
