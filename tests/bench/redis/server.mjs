// A redis-server for one run, on a free loopback port.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Starts it; `stop` ends it and removes its folder. */
export async function startServer(program = process.env.TIDEGATE_REDIS_SERVER ?? "redis-server") {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "tidegate-bench-"));
  const args = ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--loglevel", "warning"];
  const child = spawn(program, args, { stdio: "ignore" });
  const stop = () => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  process.on("exit", stop);
  return { port, stop };
}
