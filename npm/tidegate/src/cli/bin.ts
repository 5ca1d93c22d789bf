#!/usr/bin/env node
// The program behind `npx tidegate`: connects the command line to this process.
import { existsSync, readFileSync } from "node:fs";
import { main } from "./main.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

// A reader that closes the pipe early (`| head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

// Only on a terminal: a file of the standard error has errors alone.
const status = (line: string): void => void process.stderr.write(`\r\x1b[2K${line}`);

main(process.argv.slice(2), version, {
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${line}\n`),
  read: (path) => readFileSync(path === "-" ? 0 : path, "utf8"),
  exists: existsSync,
  now: Date.now,
  status: process.stderr.isTTY ? status : undefined,
}).then((code) => {
  process.exitCode = code;
});
