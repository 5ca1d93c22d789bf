// Which C library an addon for Linux needs.
import { readFileSync } from "node:fs";

/** That of Red Hat 7, Amazon Linux 2 and older Debians: whatever Node.js 20.19 runs on has one as new. */
export const OLDEST_GLIBC = "2.17";

/**
 * The newest version of glibc that a file asks for, as "2.17"; "0" where it asks for none.
 *
 * Every version that the linker bound is a text among the file's own; a text that only looks like one could make it
 * newer, never older.
 *
 * @param {string} file
 */
export function glibcOf(file) {
  const versions = readFileSync(file, "latin1").matchAll(/\0GLIBC_(\d+(?:\.\d+)+)(?=\0)/g);
  return [...versions].map(([, version]) => version).reduce(newer, "0");
}

const newer = (a, b) => (a.localeCompare(b, "en", { numeric: true }) < 0 ? b : a);
