/** A program that runs beside a test, and ends with it. */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";

export interface Running {
  readonly child: ChildProcess;
  /** Its output so far. */
  output(): string;
  stop(): Promise<void>;
}

/** Starts a program, and waits until its output matches. Throws with the output if it exits before. */
export async function start(
  command: string,
  args: string[],
  ready: RegExp,
  options: SpawnOptions = {},
): Promise<Running> {
  // A process group, so that its children end with it.
  const child = spawn(command, args, { ...options, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const waited = new Promise<void>((resolve, reject) => {
    const listen = (text: Buffer) => {
      output += text;
      if (ready.test(output)) resolve();
    };
    child.stdout?.on("data", listen);
    child.stderr?.on("data", listen);
    child.once("error", reject);
    void ended.then(() => reject(new Error(`${command} ${args.join(" ")} ended\n${output}`)));
  });
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined)
      process.kill(-child.pid, "SIGKILL");
    await ended;
  };
  await waited;
  return { child, output: () => output, stop };
}
