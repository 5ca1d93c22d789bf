/** Mistakes in a command line, and the arguments that several commands read. */
import { inMs } from "../limit/duration.ts";
import { nearest } from "../limit/nearest.ts";

/** A mistake in the command line, or a file that cannot be read: printed as one line, without a stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** An error of `parseArgs` as a sentence of one line. `help` is the command that prints `options`. */
export function argumentError(error: unknown, help: string, options: object): UsageError {
  const { message } = error as Error;
  const [sentence = ""] = message.split(/\. |\.?\n/);
  const [, option] = /a dash use '(--.+)=/.exec(message) ?? [];
  const [, written = ""] = /^Unknown option '--([^']+)/.exec(message) ?? [];
  const meant = nearest(written, Object.keys(options));
  if (meant !== undefined) return new UsageError(`${sentence}: did you mean --${meant}? See ${help}`);
  const isWord = /^Unknown option '-[^-]/.test(message) && message.includes("positional");
  const word = isWord ? ": a word that starts with a dash goes last, after --" : "";
  const remedy = option === undefined ? word : `: write ${option}=… if the value starts with a dash`;
  return new UsageError(`${sentence}${remedy}; see ${help}`);
}

/** The number that an option is written as; the caller checks its range. */
export function numberOf(option: string, written: string, rule = "a number"): number {
  const value = Number(written);
  if (written.trim() !== "" && !Number.isNaN(value)) return value;
  throw new UsageError(`--${option} must be ${rule}; got ${JSON.stringify(written)}`);
}

/** The shortest time that a number without a unit is, ms: 15 is meant as seconds or minutes, and 15 ms would look as if it worked. */
const SHORTEST = 1000;

/** The ms of a time that an option is written as: a string such as `15m`, or a number of ms, which has its unit if it is short. */
export function durationOf(option: string, written: string): number {
  const time = inMs(written);
  const ms = typeof time === "number" ? time : numberOf(option, written, "a number of ms, or a string such as 15m");
  if (ms >= 1 && ms < SHORTEST && Number(written) === ms)
    throw new UsageError(`--${option} ${written} would be ${written} ms: write the unit, as in 15s, 15m or 15ms`);
  return ms;
}
