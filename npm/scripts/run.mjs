// Runs a program where the repository is, and says so.
import { spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

const env = { ...process.env, PATH: join(root, "node_modules", ".bin") + delimiter + process.env.PATH };
// npm and the programs of node_modules are .cmd files there.
const shell = process.platform === "win32";

/** What a program writes to stdout, or `undefined` where it is missing or fails. */
export function ask(command, args, options = {}) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, env, shell, encoding: "utf8", ...options });
  return status === 0 ? stdout.trim() : undefined;
}

/** Runs a program with this terminal; ends this process where it fails. */
export function run(command, args, options = {}) {
  console.log(`> ${[command, ...args].join(" ")}`);
  const { status, signal, error } = spawnSync(command, args, { cwd: root, env, shell, stdio: "inherit", ...options });
  if (error) stop(`${command} did not start: ${error.message}`);
  // Ctrl-C reaches both: that is an end, not a failure of the program.
  if (signal === "SIGINT" || signal === "SIGTERM") process.exit(130);
  if (status !== 0) stop(`${command} failed (exit code ${status})`);
}

/** Ends with a message instead of a stack trace. */
export function stop(message) {
  console.error(`\ntidegate: ${message}`);
  process.exit(1);
}
