#!/usr/bin/env node
// The program behind `npx tidegate`: it lends the command line this process.
import { readFileSync } from "node:fs";
import { main } from "./main.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

// A reader that has seen enough (`| head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

// On a terminal alone: a file of a run's errors is for what is wrong.
const status = (line: string): void => void process.stderr.write(`\r\x1b[2K${line}`);

main(process.argv.slice(2), version, {
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${line}\n`),
  read: (path) => readFileSync(path === "-" ? 0 : path, "utf8"),
  now: Date.now,
  status: process.stderr.isTTY ? status : undefined,
}).then((code) => {
  process.exitCode = code;
});
