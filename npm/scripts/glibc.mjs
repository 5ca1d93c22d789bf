// Which version of glibc an addon for Linux needs.
import { readFileSync } from "node:fs";

/** The version of Red Hat 7, Amazon Linux 2 and older Debians. Every system that runs Node.js 20.19 has at least this one. */
export const OLDEST_GLIBC = "2.17";

/**
 * The newest version of glibc that a file requires, as "2.17"; "0" if it requires none.
 *
 * The linker stores each required version as text in the file. Other text of the same form could only make the result
 * newer, never older.
 *
 * @param {string} file
 */
export function glibcOf(file) {
  const versions = readFileSync(file, "latin1").matchAll(/\0GLIBC_(\d+(?:\.\d+)+)(?=\0)/g);
  return [...versions].map(([, version]) => version).reduce(newer, "0");
}

const newer = (a, b) => (a.localeCompare(b, "en", { numeric: true }) < 0 ? b : a);
