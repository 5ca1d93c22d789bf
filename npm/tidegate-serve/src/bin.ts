#!/usr/bin/env node
// The program behind `npx tidegate-serve`: connects the command line to this process.
import { readFileSync } from "node:fs";
import { printable, reportUnwritable } from "tidegate/cli";
import { run, UsageError } from "./cli.ts";

reportUnwritable("tidegate-serve");

run(process.argv.slice(2), {
  out: (line) => void process.stdout.write(`${line}\n`),
  read: (path) => readFileSync(path, "utf8"),
}).then(
  (code) => {
    process.exitCode ||= code;
  },
  (error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${printable(`tidegate-serve: ${error.message}`)}\n`);
    process.exitCode = 2;
  },
);
