// The requests between the passes over them, in a temporary file: they may be more than memory holds.
import { randomUUID } from "node:crypto";
import { closeSync, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Spool } from "./module.ts";

function attempt<T>(call: () => T): T {
  try {
    return call();
  } catch (cause) {
    const why = (cause as Error).message;
    throw new Error(
      `the requests cannot be kept in a temporary file in ${tmpdir()}: ${why}. TMPDIR (on Windows TEMP) names another folder`,
      { cause },
    );
  }
}

/** A file without a name: the system removes it when the process ends, however that is. */
function openUnnamed(): number {
  const path = join(tmpdir(), `tidegate-replay-${randomUUID()}`);
  const file = openSync(path, "wx+", 0o600);
  unlinkSync(path);
  return file;
}

export function temporaryFile(): Spool & { close(): void } {
  const file = attempt(openUnnamed);
  return {
    read: (at, into) => attempt(() => readSync(file, into, 0, into.length, at)),
    write: (at, bytes) =>
      attempt(() => {
        for (let done = 0; done < bytes.length; ) {
          done += writeSync(file, bytes, done, bytes.length - done, at + done);
        }
      }),
    close: () => closeSync(file),
  };
}
