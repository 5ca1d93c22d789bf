/** What command lines print: errors, and lines on a terminal. */

/** The messages of an error and of its causes, outermost first. */
export function messagesOf(error: unknown): string {
  const messages: string[] = [];
  let at = error;
  // An error may be its own cause.
  for (let depth = 0; at !== undefined && at !== null && depth < 5; depth++) {
    const { message, code, errors, cause } = Object(at) as Partial<NodeJS.ErrnoException & AggregateError>;
    // An AggregateError of Node.js, such as a connection refused on both IPv4 and IPv6, has no message of its own.
    const first: unknown = message ? undefined : errors?.[0];
    const text = message || code || String(at);
    if (first === undefined && !messages.some((earlier) => earlier.includes(text))) messages.push(text);
    at = first ?? cause;
  }
  return messages.join(": ") || String(error);
}

/** Reports output that cannot be written, once, and sets the exit code 1. The program goes on: it may be a service. */
export function reportUnwritable(program: string): void {
  let reported = false;
  process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    // A reader that closes the pipe early (`| head`) is not a failure.
    if (code === "EPIPE" || reported) return;
    reported = true;
    process.stderr.write(`${program}: the output cannot be written: ${message}\n`);
    process.exitCode = 1;
  });
}

/**
 * What shows the lines on a terminal from its top on, without flicker; the cursor stays below. Lines that have no room are left
 * out: they would scroll the first ones away. A terminal without a size has room for all.
 */
export function screenOf(lines: readonly string[], rows = 0, columns = 0): string {
  let room = (rows || Infinity) - 1;
  let shown = "";
  for (const line of lines) {
    room -= Math.max(Math.ceil(line.length / (columns || Infinity)), 1);
    if (room < 0) break;
    shown += `${line}\x1b[K\n`;
  }
  return `\x1b[H${shown}\x1b[J`;
}

/** A UTF-16 unit as an escape of JSON, so that JSON remains what it is. */
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * Text of one line, with escapes in place of what a terminal obeys, and of what turns or hides text: clients choose keys, and
 * others write documents.
 */
export const visible = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (found) => found.split("").map(escaped).join(""));

/** {@link visible} text of several lines. */
export const printable = (text: string): string => text.replace(/[^\n\t]+/g, visible);

/** A value as JSON, {@link printable}. */
export const jsonOf = (value: unknown): string => printable(JSON.stringify(value, undefined, 2));
