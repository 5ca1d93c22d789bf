import { existsSync } from "node:fs";
import { main } from "../../src/cli/main.ts";

interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs the command line in this process, on files in memory, at a fixed time. */
export async function tidegate(argv: readonly string[], files: Readonly<Record<string, string>> = {}): Promise<Run> {
  const out: string[] = [];
  const err: string[] = [];
  const read = (path: string): string => {
    const found = Object.hasOwn(files, path) ? files[path] : undefined;
    if (found === undefined) throw new Error("no such file");
    return found;
  };
  const code = await main(argv, "1.2.3", {
    out: (line) => void out.push(line),
    err: (line) => void err.push(line),
    read,
    exists: existsSync,
    now: () => 1_700_000_000_000,
  });
  return { code, out: out.join("\n"), err: err.join("\n") };
}
