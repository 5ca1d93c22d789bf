// Remembers what a step was made from, so that it is not done twice.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { root } from "./run.mjs";

/** Every file below a path, sorted. */
function filesOf(path) {
  try {
    const inside = readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
    return inside.flatMap((entry) => {
      const child = join(path, entry.name);
      return entry.isDirectory() ? filesOf(child) : [child];
    });
  } catch (error) {
    if (error.code === "ENOTDIR") return [path];
    if (error.code === "ENOENT") return [];
    throw error;
  }
}

/** Runs `make` unless `name` was made before from the very same inputs and its outputs are there. */
export function once(name, { inputs, outputs, extra = "" }, make) {
  const hash = createHash("sha256").update(extra);
  for (const file of inputs.flatMap((input) => filesOf(join(root, input)))) {
    hash.update(`\0${relative(root, file)}\0`).update(readFileSync(file));
  }
  const print = hash.digest("hex");
  const place = join(root, "node_modules", ".cache", "tidegate", name);
  const there = outputs.every((output) => existsSync(join(root, output)));
  if (there && existsSync(place) && readFileSync(place, "utf8") === print) return;
  make();
  mkdirSync(dirname(place), { recursive: true });
  writeFileSync(place, print);
}
