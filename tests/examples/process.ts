import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const root: string = fileURLToPath(new URL("../..", import.meta.url));

export interface Running {
  readonly url: string;
  readonly child: ChildProcess;
  /** Everything that it wrote so far, to both streams. */
  readonly output: () => string;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  stop(signal?: NodeJS.Signals): Promise<number | string>;
}

/** Runs the example server as `npm start` does; resolves with its address, or when it ends. */
export async function serve(env: Record<string, string>): Promise<Running> {
  const child = spawn(process.execPath, ["examples/server/server.mjs"], { cwd: root, env: { ...process.env, ...env } });
  let text = "";
  const ended = new Promise<number | string>((done) => {
    child.on("close", (code, signal) => done(code ?? signal ?? "gone"));
  });
  const url = await new Promise<string>((found, failed) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        const address = /tidegate example\s+(http:\S+)[\s\S]*Ctrl-C/.exec(text)?.[1];
        if (address !== undefined) found(address);
      });
    }
    ended.then((code) => failed(new Error(`the server ended with ${code}:\n${text}`)));
  });
  const stop = (signal: NodeJS.Signals = "SIGTERM"): Promise<number | string> => {
    child.kill(signal);
    return ended;
  };
  return { url, child, output: () => text, ended, stop };
}
