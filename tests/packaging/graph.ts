/** The import graph of the installed package. */
import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

// `from "./x.js"`, `import "./x.js"`, `import("./x.js")`, `from "./x.wasm?module"`: whatever is written as a relative path.
const RELATIVE = /["'](\.\.?\/[^"'\n?]+)(?:\?module)?["']/g;

/** All files reachable from these, including them; paths are relative to the package. */
export function reached(folder: string, entries: readonly string[], present: ReadonlySet<string>): Set<string> {
  const found = new Set<string>();
  const todo = [...entries];
  for (let path = todo.pop(); path !== undefined; path = todo.pop()) {
    if (found.has(path) || !present.has(path)) continue;
    found.add(path);
    if (!/\.(js|cjs|d\.c?ts)$/.test(path)) continue;
    // The declarations of each program too.
    todo.push(path.replace(/(?<!\.d)\.(c?)js$/, ".d.$1ts"));
    const text = readFileSync(join(folder, path), "utf8");
    for (const [, target = ""] of text.matchAll(RELATIVE)) {
      const file = posix.join(dirname(path), target);
      // A declaration imports by the same path as its program.
      todo.push(/\.d\.c?ts$/.test(path) ? file.replace(/\.cjs$/, ".d.cts") : file);
    }
  }
  return found;
}
