/** The command line. Each command is a file in commands/. */
import { parseArgs } from "node:util";
import { isInputError, isStoreError } from "../limit/errors.ts";
import { type Arguments, type Command, EXIT, type Terminal } from "./command.ts";
import { nearest } from "../limit/nearest.ts";
import { check } from "./commands/check.ts";
import { headers } from "./commands/headers.ts";
import { migrate } from "./commands/migrate.ts";
import { operations } from "./commands/operate.ts";
import { replay, serve } from "./commands/packages.ts";
import { top } from "./commands/top.ts";
import { messagesOf, printable } from "./output.ts";
import { argumentError, UsageError } from "./usage.ts";

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [check, headers, migrate, ...operations, top, replay, serve];
const NAMES = COMMANDS.map(({ name }) => name);

function overview(): string {
  const width = Math.max(...NAMES.map(({ length }) => length));
  const rows = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `Usage: tidegate <command> [options]

Commands:
${rows.join("\n")}

  tidegate help <command>   what a command takes
  tidegate --version        the version

Exit codes: 0 success; 1 the input has mistakes, or a store failed; 2 the command line has mistakes.`;
}

function commandOf(name: string): Command {
  const found = COMMANDS.find((command) => command.name === name);
  if (found !== undefined) return found;
  const meant = nearest(name, NAMES);
  const hint = meant === undefined ? "see tidegate --help" : `did you mean ${meant}?`;
  throw new UsageError(`there is no command ${JSON.stringify(name)}; ${hint}`);
}

function argumentsOf(command: Command, argv: readonly string[]): Arguments {
  if (command.options === "forwarded") return { values: {}, positionals: argv };
  const help = { type: "boolean", short: "h" } as const;
  const options = { ...command.options, help };
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
    return { values, positionals };
  } catch (error) {
    throw argumentError(error, `tidegate help ${command.name}`, options);
  }
}

/**
 * Runs the command line and returns the exit code: 0; 1 if the input has mistakes or a store failed; 2 if the command
 * line has mistakes. Those of the user are printed, not thrown.
 */
export async function main(argv: readonly string[], version: string, terminal: Terminal): Promise<number> {
  const [name, ...rest] = argv;
  try {
    if (name === undefined) {
      terminal.err(overview());
      return EXIT.usage;
    }
    if (name === "--version" || name === "-v") {
      terminal.out(version);
      return EXIT.fine;
    }
    if (name === "--help" || name === "-h" || name === "help") {
      terminal.out(rest[0] === undefined ? overview() : commandOf(rest[0]).help);
      return EXIT.fine;
    }
    const command = commandOf(name);
    const args = argumentsOf(command, rest);
    if (args.values["help"] === true) {
      terminal.out(command.help);
      return EXIT.fine;
    }
    return await command.run(args, terminal);
  } catch (error) {
    if (isStoreError(error)) {
      terminal.err(printable(`tidegate: ${messagesOf(error)}`));
      return EXIT.found;
    }
    if (!(error instanceof UsageError) && !isInputError(error)) throw error;
    terminal.err(printable(`tidegate: ${error.message}`));
    return EXIT.usage;
  }
}
