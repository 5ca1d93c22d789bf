/** Temporary folders for tests. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An empty folder, with links resolved, so that programs in it report the same path. */
export function temporaryFolder(name: string): string {
  return mkdtempSync(join(realpathSync(tmpdir()), `tidegate-${name}-`));
}

/**
 * Removes a folder, and never throws: a killed process may still be writing, and what remains is
 * in the system's temporary folder. Cleaning up must not fail a test.
 */
export function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  } catch (error) {
    console.warn(`left behind: ${folder}: ${(error as Error).message}`);
  }
}
