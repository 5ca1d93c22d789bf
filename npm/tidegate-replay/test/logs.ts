import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A folder for the logs of one test file, which is removed after its tests. */
export function logs(name: string): { folder: string; write(name: string, content: string | Uint8Array): string } {
  const folder = mkdtempSync(join(tmpdir(), `tidegate-replay-${name}-`));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return {
    folder,
    write: (name, content) => {
      const path = join(folder, name);
      writeFileSync(path, content);
      return path;
    },
  };
}
