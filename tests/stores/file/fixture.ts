/** Folders of a test's own, and processes that use them. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { remove, temporaryFolder } from "../../support/folders.ts";

const made: string[] = [];
const running = new Set<ChildProcess>();

/** A new folder's path, in one that {@link clear} removes. */
export function folder(): string {
  made.push(temporaryFolder("file"));
  return join(made.at(-1) as string, "limits");
}

/** Ends what a failed test left running, and removes the folders. */
export function clear(): void {
  for (const child of running) child.kill("SIGKILL");
  for (const path of made.splice(0)) remove(path);
}
process.on("exit", clear);

export interface Running {
  readonly child: ChildProcess;
  /** What it printed, when it has ended by itself or was killed. */
  readonly ended: Promise<string>;
}

/** Runs a program that stands beside this file, as a process of its own. */
export function run(program: string, args: readonly string[], through: readonly string[] = []): Running {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const [command = "", ...rest] = [...through, process.execPath, file, ...args];
  const child = spawn(command, rest, { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  }
  const ended = new Promise<string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => {
      running.delete(child);
      resolve(text);
    });
  });
  return { child, ended };
}
