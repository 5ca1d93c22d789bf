/** Programs that run beside a test, and end with it. */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

const running = new Set<Program>();
process.on("exit", () => {
  for (const program of running) void program.stop();
});
// Ctrl-C would end this process without that, and does not reach a program in a group of its own.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

/** Whether all threads of a process are stopped: on a loaded machine that takes a moment. Known on Linux alone. */
function isStopped(pid: number): boolean {
  const threads = `/proc/${pid}/task`;
  if (!existsSync(threads)) return true;
  return readdirSync(threads).every((id) => {
    const stat = readFileSync(`${threads}/${id}/stat`, "utf8");
    return /\) [TZX]/.test(stat.slice(stat.lastIndexOf(")")));
  });
}

/** A program that is started, in a process group of its own, so that its children end with it. */
export class Program {
  readonly child: ChildProcess;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  #output = "";
  /** Called with each output, and when it has ended. */
  readonly #waiting = new Set<() => void>();
  /** Why it runs no more. */
  #end: Error | undefined;

  constructor(command: string, args: readonly string[], options: SpawnOptions = {}) {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options, detached: true });
    this.child = child;
    running.add(this);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#output += text;
        for (const look of this.#waiting) look();
      });
    }
    this.ended = new Promise((resolve) => {
      const over = (how: number | string): void => {
        this.#end ??= new Error(`${[command, ...args].join(" ")} ended with ${how}:\n${this.#output}`);
        running.delete(this);
        for (const look of this.#waiting) look();
        resolve(how);
      };
      child.once("error", (error) => over(error.message));
      child.once("close", (code, signal) => over(code ?? signal ?? ""));
    });
  }

  /** Its output so far. */
  readonly output = (): string => this.#output;

  /** Waits until `find` returns something for the output so far. Throws with the output if it ends before. */
  until<T>(find: (output: string) => T | null | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = find(this.#output) ?? undefined;
        if (found === undefined && this.#end === undefined) return;
        this.#waiting.delete(look);
        if (found === undefined) reject(this.#end);
        else resolve(found);
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** Calls `probe` until it succeeds. Throws with the output if the program ends before; the cause is the last probe's error. */
  async answers<T>(probe: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await probe();
      } catch (error) {
        if (this.#end !== undefined) throw Object.assign(this.#end, { cause: error });
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  /** Sends a signal; after SIGSTOP no thread of it runs any more. */
  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
    if (signal === "SIGSTOP") while (!isStopped(this.child.pid as number));
  }

  /** Kills it and its children as a crash would, and waits until it is gone. */
  readonly stop = async (): Promise<void> => {
    const { pid } = this.child;
    try {
      // Where it has exited, its children may still have its output.
      if (this.#end === undefined && pid !== undefined) process.kill(-pid, "SIGKILL");
    } catch (error) {
      // None of the group is left.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
    await this.ended;
  };
}

/** A server whose output is not read. */
export class ServerProcess extends Program {
  constructor(command: string, args: readonly string[], options: SpawnOptions = {}) {
    super(command, args, { stdio: "ignore", ...options });
  }
}

/** A program, and how its output matched when it was ready. */
export type Running = Program & { readonly ready: RegExpExecArray };

/** Starts a program, and waits until its output matches. */
export async function start(
  command: string,
  args: readonly string[],
  ready: RegExp,
  options: SpawnOptions = {},
): Promise<Running> {
  const program = new Program(command, args, options);
  return Object.assign(program, { ready: await program.until((output) => ready.exec(output)) });
}
