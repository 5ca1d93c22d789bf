/** The commands that are separate packages. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Command, Terminal } from "../command.ts";
import { UsageError } from "../usage.ts";

/** The command line of a package: its exit code, or an error with the name of {@link UsageError} for the user's mistakes. */
interface CommandLine {
  run(argv: readonly string[], terminal: Terminal): Promise<number>;
}

/** A command that is a separate package, and its help. */
interface PackageCommand extends Pick<Command, "name" | "summary"> {
  readonly package: string;
  /** The arguments of its usage. */
  readonly takes: string;
  /** What it does, as a sentence. */
  readonly does: string;
}

/** The package, installed beside this one or in the current folder: `npx` may install this one elsewhere. */
async function load({ name, package: of }: PackageCommand): Promise<CommandLine> {
  const places = [import.meta.url, join(process.cwd(), "package.json")];
  for (const place of places) {
    let path: string;
    try {
      path = createRequire(place).resolve(`${of}/cli`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND") continue;
      throw error;
    }
    return (await import(pathToFileURL(path).href)) as CommandLine;
  }
  throw new UsageError(`${name} is the package ${of}, which is not installed: npm install ${of}`);
}

/** The command that passes its arguments to a package, or in a test to another command line. */
export function packageCommand(about: PackageCommand, loaded: () => Promise<CommandLine> = () => load(about)): Command {
  const { name, summary, package: of, takes, does } = about;
  return {
    name,
    summary,
    help: `Usage: tidegate ${name} ${takes}

${does} It is the package ${of}:
  npm install ${of}
  npx ${of} --help    every option`,
    options: "forwarded",
    async run({ positionals }, terminal) {
      const { run } = await loaded();
      try {
        return await run(positionals, terminal);
      } catch (error) {
        if ((error as Error).name !== "UsageError") throw error;
        throw new UsageError((error as Error).message);
      }
    },
  };
}

export const replay: Command = packageCommand({
  name: "replay",
  summary: "replay the traffic of a log against limits",
  package: "tidegate-replay",
  takes: "<log...> [options]",
  does: "Replays the traffic of a log against limits.",
});

export const serve: Command = packageCommand({
  name: "serve",
  summary: "decide by policies over HTTP, for other languages and proxies",
  package: "tidegate-serve",
  takes: "<policies.json> [options]",
  does: "Decides by the policies of a file, over HTTP.",
});
