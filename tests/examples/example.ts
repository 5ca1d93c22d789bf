// The small examples: each is one command, and prints its address.
import { join } from "node:path";
import { build } from "esbuild";
import { root } from "./process.ts";
import { start } from "../support/processes.ts";

export interface Example {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts an example's server on a free port. */
export async function example(file: string): Promise<Example> {
  const env = { ...process.env, PORT: "0" };
  const running = await start(
    process.execPath,
    [file.endsWith(".ts") ? await compiled(file) : `examples/${file}`],
    /(http:\/\/127\.0\.0\.1:\d+).*\n/,
    { cwd: root, env },
  );
  return { url: running.ready[1] as string, stop: running.stop };
}

/** The example as JavaScript: Node.js reads TypeScript from 22.18 on, and no decorators. */
async function compiled(file: string): Promise<string> {
  const outfile = join(root, "node_modules/.cache/tidegate/examples", file.replace(/\.ts$/, ".mjs"));
  const tsconfig = join(root, "examples/tsconfig.json");
  const entryPoints = [join(root, "examples", file)];
  await build({ entryPoints, outfile, tsconfig, bundle: true, packages: "external", format: "esm", platform: "node" });
  return outfile;
}
