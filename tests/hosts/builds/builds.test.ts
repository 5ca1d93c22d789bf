/** The builds that Node.js does not load by default, run in Node.js: every vector, to the bit. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { build } from "esbuild";
import { describe, expect, test } from "vitest";
import { project } from "../project.ts";

const PROGRAM = `import { inMemory } from "./memory.js";
import { onRows } from "./rows.js";
(async () => console.log(JSON.stringify([await inMemory(), await onRows()])))();`;
/** Runs before the package is loaded. */
const WITHOUT = "delete globalThis.WebAssembly; delete globalThis.BigInt;";

const BUILDS = {
  "for size": { conditions: [], first: "", begin: "" },
  "as plain JavaScript, by the condition of React Native": { conditions: ["react-native"], first: "", begin: WITHOUT },
  "as plain JavaScript, by tidegate/pure": {
    conditions: ["browser"],
    first: 'import "tidegate/pure";',
    begin: WITHOUT,
  },
};

const user = project("builds");

describe.each(Object.entries(BUILDS))("the engine compiled %s", (name, { conditions, first, begin }) => {
  test("passes the store suite, and every vector", async () => {
    const { outputFiles } = await build({
      stdin: { contents: first + PROGRAM, resolveDir: user.folder, loader: "js" },
      bundle: true,
      write: false,
      format: "iife",
      platform: "neutral",
      mainFields: [],
      conditions,
      banner: { js: begin },
    });
    const file = user.write(`${name.replace(/\W/g, "-")}.cjs`, outputFiles[0]?.text ?? "");
    // Refuses `eval` and `new Function` too.
    const args = ["--disallow-code-generation-from-strings", file];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: user.folder, maxBuffer: 2 ** 26 });
    for (const results of JSON.parse(stdout) as { name: string; error?: string }[][]) {
      expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
      expect(results.length).toBeGreaterThan(20);
    }
  });
});
