import { fileURLToPath } from "node:url";
import { type Program, start } from "../support/processes.ts";

export const root: string = fileURLToPath(new URL("../..", import.meta.url));

export interface Running {
  readonly url: string;
  readonly output: Program["output"];
  /** Returns the exit code, or the signal that ended it. */
  stop(signal?: NodeJS.Signals): Program["ended"];
}

/** Runs the example server as `npm start` does; resolves with its address, or when it ends. */
export async function serve(env: Record<string, string>): Promise<Running> {
  const ready = /tidegate example\s+(http:\S+)[\s\S]*Ctrl-C/;
  const options = { cwd: root, env: { ...process.env, ...env } };
  const running = await start(process.execPath, ["examples/server/server.mjs"], ready, options);
  const stop = (signal: NodeJS.Signals = "SIGTERM"): Program["ended"] => {
    running.signal(signal);
    return running.ended;
  };
  return { url: running.ready[1] as string, output: running.output, stop };
}
