#!/usr/bin/env node
// The program behind `npx tidegate-serve`: connects the command line to this process.
import { readFileSync } from "node:fs";
import { run, UsageError } from "./cli.ts";

// A log that cannot be written, on a full disk or to a reader that has ended, ends no service.
let reported = false;
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE" || reported) return;
  reported = true;
  process.stderr.write(`tidegate-serve: the output cannot be written: ${message}\n`);
  process.exitCode = 1;
});

run(process.argv.slice(2), {
  out: (line) => void process.stdout.write(`${line}\n`),
  read: (path) => readFileSync(path, "utf8"),
}).then(
  (code) => {
    process.exitCode ||= code;
  },
  (error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`tidegate-serve: ${error.message}\n`);
    process.exitCode = 2;
  },
);
