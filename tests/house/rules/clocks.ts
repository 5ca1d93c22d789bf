/** Time and chance come in where they are passed in, or at a store's own door. */
import ts from "typescript";
import { matching, oncePerFile, type Rule, type Tree } from "../tree.ts";

/** What may be read where, by the path below `npm/tidegate/src`. */
const DOORS: readonly (readonly [what: string, files: RegExp])[] = [
  // A store's own clock and pauses, and which shards it reads.
  ["Date.now", /^stores\//],
  ["performance.now", /^stores\//],
  ["Math.random", /^stores\//],
  ["setTimeout", /^stores\//],
  // The seed of the table's hash.
  ["crypto.getRandomValues", /^stores\/memory\.ts$/],
  // Where a call has no `now`.
  ["Date.now", /^limit\/monotonic\.ts$/],
  ["Date.now", /^limiter\/(limiter|adaptive|fallback|lease\/\w+)\.ts$/],
  [
    "Date.now",
    /^(cli\/bin|client\/clock|client\/rate-limit-fields|middleware\/drop-in\/[\w-]+|react\/clock-offset)\.ts$/,
  ],
  // A sleep of the machine within a wait.
  ["Date.now", /^limiter\/budget\.ts$/],
  // Durations, which no correction of the host's clock may change.
  ["performance.now", /^(limit\/monotonic|react\/(clock-offset|remote))\.ts$/],
  // Deadlines: each ends with the call that it is for.
  ["setTimeout", /^(limit\/monotonic|limiter\/budget|client\/clock|react\/remote)\.ts$/],
  // What differs between the retries of two clients; the values of generated tests.
  ["Math.random", /^(client\/fetch|testing\/vectors)\.ts$/],
];

const GLOBALS = new Set(["setTimeout", "setInterval", "setImmediate"]);
const MEMBERS = new Set([
  "Date.now",
  "performance.now",
  "Math.random",
  "crypto.getRandomValues",
  "crypto.randomUUID",
  "process.hrtime",
]);

/** Where a file reads a clock, draws a number or starts a timer. */
const reads = oncePerFile((path, text) => {
  const found: { what: string; line: number }[] = [];
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true);
  const add = (what: string, node: ts.Node): void => {
    found.push({ what, line: source.getLineAndCharacterOfPosition(node.getStart()).line + 1 });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node)) return;
    if (ts.isPropertyAccessExpression(node)) {
      const [what] = [...MEMBERS].filter(
        (member) => member === node.getText() || `globalThis.${member}` === node.getText(),
      );
      if (what !== undefined) add(what, node);
    }
    if (ts.isNewExpression(node) && node.expression.getText() === "Date" && !node.arguments?.length)
      add("new Date", node);
    if (ts.isCallExpression(node)) {
      const name = node.expression.getText().replace(/^globalThis\./, "");
      if (GLOBALS.has(name)) add(name, node);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
});

function inJavaScript(tree: Tree): string[] {
  return matching(tree, /^npm\/tidegate\/src\/.*\.tsx?$/).flatMap(([path, text]) => {
    const file = path.replace("npm/tidegate/src/", "");
    return reads(path, text)
      .filter(({ what }) => !DOORS.some(([door, files]) => door === what && files.test(file)))
      .map(({ what, line }) => `${path}:${line} uses ${what}`);
  });
}

/**
 * The file store waits for other processes; a hash's secret is drawn where a table is made; a fuzz target that does not
 * end is ended.
 */
const RUST = /^crates\/(file\/src\/(open|store)|node\/src\/open|xtask\/src\/fuzz)\.rs$/;

function inRust(tree: Tree): string[] {
  return matching(tree, /^crates\/[\w-]+\/src\/.*\.rs$/)
    .filter(
      ([path, text]) => !RUST.test(path) && /\b(SystemTime|Instant|RandomState|getrandom|thread_rng)\b/.test(text),
    )
    .map(([path]) => `${path} reads a clock or draws a number`);
}

const source = (file: string, code: string) => ({ [`npm/tidegate/src/${file}`]: code });

export const clocks: readonly Rule[] = [
  {
    name: "JavaScript reads clocks, draws numbers and starts timers only where that is written down",
    check: inJavaScript,
    broken: [
      source("limit/limit.ts", "export const now = Date.now();\n"),
      source("limit/config.ts", "export const drawn = Math.random();\n"),
      source("http/key.ts", "setTimeout(() => {}, 5);\n"),
      source("limiter/limiter.ts", "setInterval(() => {}, 5);\n"),
      source("limiter/limiter.ts", "export const clock = globalThis.performance.now;\n"),
      source("http/fields.ts", "export const today = new Date();\n"),
      source("engine/engine.ts", "crypto.getRandomValues(new Uint8Array(1));\n"),
    ],
  },
  {
    name: "so does Rust",
    check: inRust,
    broken: [
      { "crates/core/src/take.rs": "use std::time::SystemTime;\n" },
      { "crates/table/src/table.rs": "let now = Instant::now();\n" },
      { "crates/wasm/src/engine.rs": "getrandom::fill(&mut seed);\n" },
    ],
  },
];
