/** Folders that end with a test. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An empty folder of its own, with its links followed: what runs in it says the same path. */
export function temporaryFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), `tidegate-${name}-`));
}

/**
 * Removes a folder, and never throws: a process that was killed may still write its last, and what is left then is the
 * system's to sweep. A test must not fail of it.
 */
export function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  } catch (error) {
    console.warn(`left behind: ${folder}: ${(error as Error).message}`);
  }
}
