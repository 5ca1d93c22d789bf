import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Command, type Terminal, UsageError } from "../command.ts";

const PACKAGE = "tidegate-replay";
const HELP = `Usage: tidegate replay <log...> [options]

Replays the traffic of a log against limits. It is the package tidegate-replay:
  npm install tidegate-replay
  npx tidegate-replay --help    every option`;

/** The package's command line: its exit code, or an error with the name of {@link UsageError} for the user's mistakes. */
interface Replay {
  run(argv: readonly string[], terminal: Terminal): Promise<number>;
}

/** The package, installed beside this one or in the current folder: `npx` may install this one elsewhere. */
async function load(): Promise<Replay> {
  const places = [import.meta.url, join(process.cwd(), "package.json")];
  for (const place of places) {
    let path: string;
    try {
      path = createRequire(place).resolve(`${PACKAGE}/cli`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND") continue;
      throw error;
    }
    return (await import(pathToFileURL(path).href)) as Replay;
  }
  throw new UsageError(`replay is the package ${PACKAGE}, which is not installed: npm install ${PACKAGE}`);
}

/** `tidegate replay`, with this package or, in a test, another. */
export function replayWith(load: () => Promise<Replay>): Command {
  return {
    name: "replay",
    summary: "replay the traffic of a log against limits",
    help: HELP,
    options: "forwarded",
    async run({ positionals }, terminal) {
      const { run } = await load();
      try {
        return await run(positionals, terminal);
      } catch (error) {
        if ((error as Error).name !== "UsageError") throw error;
        throw new UsageError((error as Error).message);
      }
    },
  };
}

/** `tidegate replay`. */
export const replay: Command = replayWith(load);
