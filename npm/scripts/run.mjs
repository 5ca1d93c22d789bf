// Runs programs where the repository is, and remembers what a step was made from, so that it is not done twice.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { digestOf } from "./files.mjs";

export const root = fileURLToPath(new URL("../..", import.meta.url));

export const env = { ...process.env, PATH: join(root, "node_modules", ".bin") + delimiter + process.env.PATH };
// npm and the programs of node_modules are .cmd files there.
export const shell = process.platform === "win32";

/** Returns a program's stdout, or `undefined` if it is missing or fails. */
export function output(command, args, options = {}) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, env, shell, encoding: "utf8", ...options });
  return status === 0 ? stdout.trim() : undefined;
}

/** A program that did not end well. Where nothing catches it, its message is printed without a stack trace. */
class Failure extends Error {}
process.on("uncaughtException", (error) => {
  if (!(error instanceof Failure)) console.error(error);
  stop(error.message);
});

/** Runs a program with this terminal. @throws where it fails */
export async function run(command, args, options = {}) {
  console.log(`> ${[command, ...args].join(" ")}`);
  const child = spawn(command, args, { cwd: root, env, shell, stdio: "inherit", ...options });
  const [status, signal] = await new Promise((done, fail) => {
    child.once("error", (error) => fail(new Failure(`${command} did not start: ${error.message}`)));
    child.once("close", (...ended) => done(ended));
  });
  // Ctrl-C reaches both: that is an end, not a failure of the program.
  if (signal === "SIGINT" || signal === "SIGTERM") process.exit(130);
  if (status !== 0) throw new Failure(`${command} failed (exit code ${status})`);
}

/** Exits with a message instead of a stack trace. */
export function stop(message) {
  console.error(`\ntidegate: ${message}`);
  process.exit(1);
}

const making = new Map();

/** Runs `make` unless `name` was made before from the same inputs and its outputs exist. Concurrent calls wait for one. */
export async function once(name, made, make) {
  while (making.has(name)) await making.get(name).catch(() => {});
  const run = unlessMade(name, made, make).finally(() => making.delete(name));
  making.set(name, run);
  await run;
}

async function unlessMade(name, { inputs, outputs, extra = "" }, make) {
  const from = inputs.map((input) => join(root, input));
  const print = digestOf(root, from, extra);
  const place = join(root, "node_modules", ".cache", "tidegate", name);
  const exist = outputs.every((output) => existsSync(join(root, output)));
  if (exist && existsSync(place) && readFileSync(place, "utf8") === print) return;
  await make();
  mkdirSync(dirname(place), { recursive: true });
  writeFileSync(place, print);
}
