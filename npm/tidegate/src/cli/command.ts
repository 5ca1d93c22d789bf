/** What a command is, and what it is given. */
import type { ParseArgsConfig } from "node:util";
import { numberOf, UsageError } from "./usage.ts";

/** Exit codes: success; mistakes in the input, or a store that failed; a wrong command line or an unreadable file. */
export const EXIT = { fine: 0, found: 1, usage: 2 } as const;

/** What a command reads and writes; tests pass their own. */
export interface Terminal {
  out(line: string): void;
  err(line: string): void;
  /** The text of a file, of standard input if the path is `-`. */
  read(path: string): string;
  exists(path: string | URL): boolean;
  /** Epoch ms. */
  now(): number;
  /** Replaces what is on the screen; absent if standard output is not a terminal. */
  screen?: ((lines: readonly string[]) => void) | undefined;
  /** Replaces the line of progress; absent if standard error is not a terminal. */
  status?: ((line: string) => void) | undefined;
}

type Options = NonNullable<ParseArgsConfig["options"]>;

/** Options with a string, and flags. */
export const optionsOf = (texts: readonly string[], ...flags: readonly string[]): Options => ({
  ...Object.fromEntries(texts.map((name) => [name, { type: "string" }] as const)),
  ...Object.fromEntries(flags.map((name) => [name, { type: "boolean" }] as const)),
});

/** The arguments after a command's name, as `util.parseArgs` returns them. */
export interface Arguments {
  /** The options' values: see {@link text}, {@link flag}, {@link texts} and {@link number}. */
  readonly values: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;
  readonly positionals: readonly string[];
}

/** One command: one file in `commands/`, and one name in `COMMANDS` of `main.ts`. */
export interface Command {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** The lines of `tidegate help <name>`, the usage first. */
  readonly help: string;
  /** Its options besides `--help`; `forwarded`: all words after its name are positionals, `--help` too. */
  readonly options: Options | "forwarded";
  /** Returns the exit code. A {@link UsageError} is printed, and the exit code is 2. */
  run(args: Arguments, terminal: Terminal): number | Promise<number>;
}

/** The text of an option, if it was given. */
export function text(args: Arguments, name: string): string | undefined {
  const value = args.values[name];
  return typeof value === "string" ? value : undefined;
}

/** The texts of an option that may be given several times. */
export function texts(args: Arguments, name: string): readonly string[] {
  const value = args.values[name];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** Whether a flag was given. */
export const flag = (args: Arguments, name: string): boolean => args.values[name] === true;

/** The number of an option as `read` reads it, if it was given: a time is read by `durationOf`. The caller checks its range. */
export function number(
  args: Arguments,
  name: string,
  read: (name: string, written: string) => number = numberOf,
): number | undefined {
  const written = text(args, name);
  return written === undefined ? undefined : read(name, written);
}

/** The text of a file. Throws a {@link UsageError} with the reason if it cannot be read. */
export function read(terminal: Terminal, path: string): string {
  try {
    return terminal.read(path);
  } catch (error) {
    throw new UsageError(`cannot read ${path}: ${(error as Error).message}`);
  }
}

/** The value of a JSON file. Throws a {@link UsageError} with the place of a syntax error. */
export function readJson(terminal: Terminal, path: string): unknown {
  const written = read(terminal, path);
  try {
    return JSON.parse(written);
  } catch (error) {
    throw new UsageError(`${path} is not JSON: ${(error as Error).message}`);
  }
}
