// Files below a path, and their digest, by which steps, tests and records see that what they were made from has changed.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Every file at or below a path; none where there is nothing. */
function filesOf(path) {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
      const child = join(path, entry.name);
      return entry.isDirectory() ? filesOf(child) : [child];
    });
  } catch (error) {
    if (error.code === "ENOTDIR") return [path];
    if (error.code === "ENOENT") return [];
    throw error;
  }
}

/** The SHA-256, in hexadecimal, of `extra` and of every file at or below these paths, whose names count from `base` on. */
export function digestOf(base, paths, extra = "") {
  const hash = createHash("sha256").update(extra);
  for (const file of paths.flatMap(filesOf).sort()) {
    hash.update(`\0${file.slice(base.length)}\0`).update(readFileSync(file));
  }
  return hash.digest("hex");
}
