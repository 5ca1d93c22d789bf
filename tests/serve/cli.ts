/** The built `tidegate` on the command line. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { root } from "./service.ts";

export const BIN: string = join(root, "npm/tidegate/dist/cli/bin.js");

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export const PIPES: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];

/** Runs the built `tidegate`, in a folder whose project has the clients. */
export async function tidegate(args: readonly string[], cwd: string = root): Promise<Ran> {
  return ended(spawn(process.execPath, [BIN, ...args], { cwd, stdio: PIPES }));
}

export async function ended(child: ChildProcessByStdio<null, Readable, Readable>): Promise<Ran> {
  const code = new Promise<number | null>((done) => child.once("close", done));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await code, out, err };
}
