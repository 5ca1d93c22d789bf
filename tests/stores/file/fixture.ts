/** Folders of a test's own, and processes that use them. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { Program } from "../../support/processes.ts";

const made: string[] = [];
const running: Program[] = [];

/** A new folder's path, in one that {@link clear} removes. */
export function folder(): string {
  made.push(temporaryFolder("file"));
  return join(made.at(-1) as string, "limits");
}

/** Ends what a failed test left running, and removes the folders. */
export function clear(): void {
  for (const program of running.splice(0)) void program.stop();
  for (const path of made.splice(0)) remove(path);
}
process.on("exit", clear);

/** Runs a program that stands beside this file, as a process of its own. `over`: how it ended, and what it printed. */
export function run(program: string, args: readonly string[], through: readonly string[] = []) {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const [command = "", ...rest] = [...through, process.execPath, file, ...args];
  const made = new Program(command, rest);
  running.push(made);
  return { child: made.child, over: made.ended.then((how) => [how, made.output()] as const) };
}

export type Running = ReturnType<typeof run>;
