/** Processes that take from one key at the same time: see `taker.mjs`. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const program = fileURLToPath(new URL("taker.mjs", import.meta.url));
const env = { ...process.env, NODE_NO_WARNINGS: "1", DO_NOT_TRACK: "1" };

/** Both operations, and how many calls all processes together are granted of each. */
export const OPERATIONS = [
  ["limit", 300],
  ["limitAll", 200],
] as const;

/** Starts a process for each list of arguments; returns how many calls all of them together were granted. */
export async function grantedTo(takers: readonly string[][], runtime: string = process.execPath): Promise<number> {
  const ended = await Promise.all(takers.map((args) => run(runtime, [program, ...args], { env })));
  return ended.reduce((sum, { stdout }) => sum + Number(stdout), 0);
}
