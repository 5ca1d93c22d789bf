// Runs a program in a process group of its own, keeps what it writes, and sees to it that it ends.
import { spawn, spawnSync } from "node:child_process";

/** No step of the tests takes nearly as long, on a busy machine either: what still runs then waits for something that will not happen. */
const LIMIT_MINUTES = 45;
/** How long a program that has ended may leave its output open, as one does that it started and forgot. */
const LEFT_OPEN_MS = 10_000;

// npm and the programs of node_modules are .cmd files on Windows, which a shell runs.
const shell = process.platform === "win32";
const groups = !shell;
const running = new Set();

/** Ends a program and what it started. */
function end(child, signal) {
  try {
    process.kill(groups ? -child.pid : child.pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

// Ctrl-C reaches this program alone, for the others are in groups of their own.
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    for (const child of running) end(child, "SIGTERM");
    process.exit(130);
  });
}

/** The processes of a group, a line each, for the reader of a run that did not end. */
function processesOf(child) {
  if (!groups) return "";
  const { stdout } = spawnSync("ps", ["-e", "-o", "pgid=,pid=,etime=,args="], { encoding: "utf8" });
  return (stdout ?? "")
    .split("\n")
    .filter((line) => line.trim().startsWith(`${child.pid} `))
    .map((line) => line.slice(0, 200))
    .join("\n");
}

/**
 * Runs a program to its end. One that takes longer than `limitMs` is ended, and so fails, with what it had written and which
 * of its processes still ran. What a program leaves running is ended too.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import("node:child_process").SpawnOptions & { limitMs?: number, leftOpenMs?: number }} options
 * @returns {Promise<{ status: number, output: string }>}
 */
export function watch(command, args, { limitMs = LIMIT_MINUTES * 60_000, leftOpenMs = LEFT_OPEN_MS, ...options } = {}) {
  const how = { shell, stdio: ["ignore", "pipe", "pipe"], detached: groups, ...options };
  const child = spawn(command, args, how);
  running.add(child);
  let output = "";
  const note = (line) => {
    output += `\n!!! ${line}\n`;
  };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text) => {
      output += text;
    });
  }
  const timers = [];
  const later = (ms, run) => timers.push(setTimeout(run, ms));
  const letGo = () => {
    end(child, "SIGKILL");
    child.stdout.destroy();
    child.stderr.destroy();
  };
  return new Promise((done) => {
    const settle = (status) => {
      running.delete(child);
      for (const timer of timers) clearTimeout(timer);
      done({ status, output });
    };
    later(limitMs, () => {
      note(
        `not done after ${Math.round(limitMs / 60_000)} minutes, and so ended. Running were:\n${processesOf(child)}`,
      );
      end(child, "SIGTERM");
      later(leftOpenMs, letGo);
    });
    child.on("error", (error) => {
      note(error.message);
      settle(1);
    });
    child.on("exit", () => {
      later(leftOpenMs, () => {
        note(`its program has ended, but not what that started:\n${processesOf(child)}`);
        letGo();
      });
    });
    child.on("close", (status) => settle(status ?? 1));
  });
}
