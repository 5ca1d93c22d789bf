#!/usr/bin/env node
// The program behind `npx tidegate`: connects the command line to this process.
import { existsSync, readFileSync } from "node:fs";
import { main } from "./main.ts";
import { reportUnwritable, screenOf } from "./output.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

reportUnwritable("tidegate");

// Only on a terminal: a file that standard error is redirected to has only errors.
const status = (line: string): void => void process.stderr.write(`\r\x1b[2K${line}`);

const screen = (lines: readonly string[]): void =>
  void process.stdout.write(screenOf(lines, process.stdout.rows, process.stdout.columns));

main(process.argv.slice(2), version, {
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${line}\n`),
  read: (path) => readFileSync(path === "-" ? 0 : path, "utf8"),
  exists: existsSync,
  now: Date.now,
  screen: process.stdout.isTTY ? screen : undefined,
  status: process.stderr.isTTY ? status : undefined,
}).then((code) => {
  process.exitCode ||= code;
});
