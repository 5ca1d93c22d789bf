/** What a run of the rows found: `works.test.ts` writes it, `keep.mjs` keeps it in results.json. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { digestOf } from "../../../npm/scripts/files.mjs";
import { root } from "../installed.ts";
import { GROUPS } from "./groups.ts";
import type { Tool } from "./tool.ts";

/** A row that was built and run, and worked. */
export interface Row {
  readonly name: string;
  readonly does: string;
  /** The tarball's version. */
  readonly tidegate: string;
  /** The Node.js that ran the commands. */
  readonly node: string;
  /** The day of the run, UTC. */
  readonly at: string;
  /** The SHA-256 of the row, its packages and its app: a row that changed has to run again. */
  readonly definition: string;
}

export const LAST_RUN: string = join(root, "node_modules/.cache/tidegate/works.json");

const version = (): string =>
  (JSON.parse(readFileSync(join(root, "npm/tidegate/package.json"), "utf8")) as { version: string }).version;

export function definitionOf(tool: Tool): string {
  const app = join(import.meta.dirname, "apps", tool.app);
  return digestOf(app, [app], JSON.stringify([tool, GROUPS[tool.group]])).slice(0, 16);
}

export const rowOf = (tool: Tool): Row => ({
  name: tool.name,
  does: tool.does,
  tidegate: version(),
  node: tool.node ?? process.versions.node,
  at: new Date().toISOString().slice(0, 10),
  definition: definitionOf(tool),
});
