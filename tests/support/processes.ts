/** Programs that run beside a test, and end with it. */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

export interface Running {
  readonly child: ChildProcess;
  /** Its output so far. */
  output(): string;
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
const groups = new Set<() => void>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
  for (const kill of groups) kill();
});
// Ctrl-C would end this process without that, and does not reach a program in a group of its own.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

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
  const kill = (): void => {
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined)
      process.kill(-child.pid, "SIGKILL");
  };
  groups.add(kill);
  void ended.then(() => groups.delete(kill));
  const stop = async (): Promise<void> => {
    kill();
    await ended;
  };
  await waited;
  return { child, output: () => output, stop };
}

/** Whether all threads of a process are stopped: on a loaded machine that takes a moment. Known on Linux alone. */
function isStopped(pid: number): boolean {
  const threads = `/proc/${pid}/task`;
  if (!existsSync(threads)) return true;
  return readdirSync(threads).every((id) => {
    const stat = readFileSync(`${threads}/${id}/stat`, "utf8");
    return /\) [TZX]/.test(stat.slice(stat.lastIndexOf(")")));
  });
}

/** A server whose output is not read, which is killed at the latest when the test's process ends. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #gone: Promise<unknown>;

  constructor(command: string, args: readonly string[], options: SpawnOptions = {}) {
    const child = spawn(command, args, { stdio: "ignore", ...options });
    running.add(child);
    this.#gone = new Promise((resolve) => child.once("exit", resolve)).then(() => running.delete(child));
    this.#child = child;
  }

  /** Calls `probe` until it succeeds; throws its error if the server has ended. */
  async answers<T>(probe: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await probe();
      } catch (error) {
        if (this.#child.exitCode !== null || this.#child.signalCode !== null) throw error;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  /** Sends a signal; after SIGSTOP no thread of it runs any more. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
    if (signal === "SIGSTOP") while (!isStopped(this.#child.pid as number));
  }

  /** Kills it as a crash would, and waits until it is gone. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.#gone;
  }
}
