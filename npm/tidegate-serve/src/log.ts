/** The service's log: one JSON object per line. Clients choose the paths in it. */
import { messagesOf, printable } from "tidegate/cli";

/** Fields of a line, beside `time`, `level` and `event`. */
type Fields = Readonly<Record<string, unknown>>;

/** Writes events; `event` is one of a few fixed names, such as `started`. */
export interface Log {
  info(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
}

export function jsonLines(write: (line: string) => void): Log {
  const at =
    (level: string) =>
    (event: string, fields: Fields = {}) =>
      write(printable(JSON.stringify({ time: new Date().toISOString(), level, event, ...fields })));
  return { info: at("info"), error: at("error") };
}

/** Logs a request that failed by no mistake of its client. */
export function logFailure(log: Log, path: string, error: unknown): void {
  const stack = error instanceof Error ? error.stack : undefined;
  log.error("request failed", { path, cause: messagesOf(error), stack });
}
