/** PgBouncer in transaction mode in front of a server: each transaction may get another connection. */
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { freePort } from "../../support/ports.ts";
import type { Server } from "./server.ts";

const program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"].find((at) =>
  existsSync(at),
);
/** Whether it is installed. */
export const hasPgbouncer = program !== undefined;

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });

/** Starts it with so many connections to the server; returns its port, and what ends it. */
export async function startPgbouncer(server: Server, connections: number) {
  const folder = temporaryFolder("pgbouncer");
  const port = await freePort();
  const config = join(folder, "pgbouncer.ini");
  writeFileSync(
    config,
    `[databases]
* = host=${server.host} port=${server.port} user=${server.user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 200
logfile = ${join(folder, "log")}
`,
    { mode: 0o644 },
  );
  const asRoot = process.getuid?.() === 0;
  if (asRoot) {
    const id = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
    chownSync(folder, id("-u"), id("-g"));
  }
  const child = spawn(program as string, [...(asRoot ? ["-u", "postgres"] : []), config], { stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("close", resolve));
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended with ${child.exitCode}; see ${folder}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const close = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    remove(folder);
  };
  return { port, close };
}
