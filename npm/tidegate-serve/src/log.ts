/** The service's log: one JSON object per line. */
import { messagesOf } from "tidegate/cli";

/** Fields of a line, beside `time`, `level` and `event`. */
type Fields = Readonly<Record<string, unknown>>;

/** Writes events; `event` is one of a few fixed names, such as `started`. */
export interface Log {
  info(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
}

/** A UTF-16 unit as an escape of JSON. */
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** JSON in which also those characters are escapes that a terminal obeys, or that turn or hide text: clients choose paths. */
const lineOf = (fields: Fields): string =>
  JSON.stringify(fields).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (found) => found.split("").map(escaped).join(""));

export function jsonLines(write: (line: string) => void): Log {
  const at =
    (level: string) =>
    (event: string, fields: Fields = {}) =>
      write(lineOf({ time: new Date().toISOString(), level, event, ...fields }));
  return { info: at("info"), error: at("error") };
}

/** Logs a request that failed by no mistake of its client. */
export function logFailure(log: Log, path: string, error: unknown): void {
  const stack = error instanceof Error ? error.stack : undefined;
  log.error("request failed", { path, cause: messagesOf(error), stack });
}
