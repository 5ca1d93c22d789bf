/** PgBouncer in transaction mode in front of a server: each transaction may get another connection. */
import { execFileSync } from "node:child_process";
import { chownSync, existsSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { freePort } from "../../support/ports.ts";
import { ServerProcess } from "../../support/processes.ts";
import type { Server } from "./server.ts";

const program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"].find((at) =>
  existsSync(at),
);
/** Whether it is installed. */
export const hasPgbouncer = program !== undefined;

async function answers(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.destroy();
}

/** Starts it with so many connections to the server; returns its port, and what ends it. */
export async function startPgbouncer(behind: Server, connections: number) {
  const folder = temporaryFolder("pgbouncer");
  const port = await freePort();
  const config = join(folder, "pgbouncer.ini");
  writeFileSync(
    config,
    `[databases]
* = host=${behind.host} port=${behind.port} user=${behind.user}
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
  const server = new ServerProcess(program as string, [...(asRoot ? ["-u", "postgres"] : []), config]);
  await server.answers(() => answers(port));
  const close = async (): Promise<void> => {
    await server.stop();
    remove(folder);
  };
  return { port, close };
}
