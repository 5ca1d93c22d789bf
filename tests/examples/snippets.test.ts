/** TypeScript checks the code that the playground offers to copy, as it would in a user's project. */
import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";
import { FRAMEWORK_NAMES } from "../../examples/playground/src/model/frameworks.ts";
import { type Draft, FIRST } from "../../examples/playground/src/model/policy.ts";
import { SCENARIOS } from "../../examples/playground/src/model/scenarios.ts";
import { type StoreName, STORE_NAMES, snippet } from "../../examples/playground/src/model/snippets.ts";
import { root } from "./process.ts";

/** What the runtime of a store declares: Deno, and Node.js from 22.5 on. */
const AMBIENT = `
  declare const Deno: { openKv(): Promise<import("tidegate/deno-kv").KvLike> };
  declare module "node:sqlite" {
    export class DatabaseSync {
      constructor(path: string);
      exec(sql: string): void;
      prepare(sql: string): { all(...values: unknown[]): unknown[]; run(...values: unknown[]): { changes: number | bigint } };
    }
  }
`;

const drafts: Draft[] = [
  ...SCENARIOS.map(({ draft }) => draft),
  { ...FIRST, kind: "fixed window", period: 60_000, capacity: 10, maxReserved: undefined, shards: 3 },
  { ...FIRST, rate: 1, period: 30_000, capacity: 0, maxReserved: 0 },
];

test("the code of every policy, for every store and framework, compiles", () => {
  const files = new Map<string, string>([[join(root, "tests/examples/ambient.d.ts"), AMBIENT]]);
  for (const [i, draft] of drafts.entries()) {
    for (const store of STORE_NAMES) {
      const text = snippet(draft, store as StoreName, i % 2 === 1);
      files.set(join(root, `tests/examples/snippet-${i}-${store.replace(" ", "-")}.ts`), text);
    }
    for (const framework of FRAMEWORK_NAMES) {
      const text = snippet(draft, i % 2 === 0 ? "memory" : "redis", i % 2 === 1, framework);
      files.set(join(root, `tests/examples/snippet-${i}-by-${framework}.ts`), text);
    }
  }
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipLibCheck: true,
    types: ["node"],
    experimentalDecorators: true,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => files.has(name) || fileExists(name);
  host.readFile = (name) => files.get(name) ?? readFile(name);
  host.getSourceFile = (name, version, ...rest) => {
    const text = files.get(name);
    return text === undefined ? getSourceFile(name, version, ...rest) : ts.createSourceFile(name, text, version);
  };
  const program = ts.createProgram([...files.keys()], options, host);
  const mistakes = ts
    .getPreEmitDiagnostics(program)
    .map(({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`);
  expect(mistakes).toEqual([]);
});

test("defaults are left out", () => {
  const plain = snippet({ ...FIRST, rate: 5, capacity: 5, maxReserved: undefined }, "memory", false);
  expect(plain).toContain('api: { kind: "token bucket", rate: 5, period: SECOND },');
});
