// The small examples: each is one command, and tells where it listens.
import { root } from "./process.ts";
import { start } from "../support/processes.ts";

export interface Example {
  readonly url: string;
  stop(): Promise<void>;
}

/** Runs an example that serves, on a port that the system chooses. */
export async function example(file: string): Promise<Example> {
  const env = { ...process.env, PORT: "0" };
  const address = /http:\/\/127\.0\.0\.1:\d+/;
  const running = await start(process.execPath, [`examples/${file}`], /http:\S+\n/, { cwd: root, env });
  return { url: address.exec(running.output())?.[0] ?? "", stop: running.stop };
}
