/** The service's log: one JSON object per line. */

/** Fields of a line, beside `time`, `level` and `event`. */
export type Fields = Readonly<Record<string, unknown>>;

/** Writes events; `event` is one of a few fixed names, such as `started`. */
export interface Log {
  info(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
}

/** The messages of an error and of its causes, outermost first. */
export function messagesOf(error: unknown): string {
  const messages: string[] = [];
  for (let at = error; at !== undefined && at !== null && messages.length < 5; at = (at as { cause?: unknown }).cause) {
    // An AggregateError of Node.js, such as a connection refused on both IPv4 and IPv6, has no message of its own.
    const { message, code, errors } = Object(at) as { message?: string; code?: string; errors?: readonly unknown[] };
    const first = errors?.[0] === undefined ? undefined : messagesOf(errors[0]);
    const text = message || first || code || String(at);
    if (!messages.includes(text)) messages.push(text);
  }
  return messages.join(": ");
}

/** A log that writes its lines with this function. */
export function jsonLines(write: (line: string) => void): Log {
  const at =
    (level: string) =>
    (event: string, fields: Fields = {}) =>
      write(JSON.stringify({ time: new Date().toISOString(), level, event, ...fields }));
  return { info: at("info"), error: at("error") };
}
