#!/usr/bin/env node
// The program behind `npx tidegate-replay`: it connects the command line to this process.
import { readFileSync } from "node:fs";
import { run, UsageError } from "./cli.ts";

// A reader that has seen enough (`| head`) is not a failure.
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") return;
  process.stderr.write(`tidegate-replay: the output cannot be written: ${message}\n`);
  process.exitCode = 2;
});

const status = (line: string): void => void process.stderr.write(`\r\x1b[2K${line}`);

run(process.argv.slice(2), {
  out: (line) => void process.stdout.write(`${line}\n`),
  read: (path) => readFileSync(path === "-" ? 0 : path, "utf8"),
  status: process.stderr.isTTY ? status : undefined,
}).then(
  (code) => {
    process.exitCode ||= code;
  },
  (error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`tidegate-replay: ${error.message}\n`);
    process.exitCode = 2;
  },
);
