// A PostgreSQL server for one run, with default (durable) settings, in a temporary folder.
import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const asRoot = process.getuid?.() === 0;
const debian = "/usr/lib/postgresql";
const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
const bin = versions
  .map((version) => join(debian, version, "bin"))
  .find((folder) => existsSync(join(folder, "initdb")));

/** The path of one of the server's programs. */
export const program = (name) => (bin === undefined ? name : join(bin, name));

function run(folder, name, ...args) {
  const path = program(name);
  // initdb and postgres refuse root.
  const line = asRoot ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", path] : [path];
  const { status } = spawnSync(line[0], [...line.slice(1), ...args], { cwd: folder, stdio: "ignore" });
  if (status !== 0) throw new Error(`${name} ended with ${status}; see ${folder}`);
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts it; fsync and synchronous_commit stay on. */
export async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), "tidegate-bench-"));
  if (asRoot) {
    const id = (flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
    chownSync(folder, id("-u"), id("-g"));
  }
  const data = join(folder, "data");
  run(folder, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--locale=C", "-E", "UTF8");
  const port = await freePort();
  const settings = [`port = ${port}`, "listen_addresses = '127.0.0.1'", "unix_socket_directories = ''"];
  writeFileSync(join(folder, "own.conf"), [...settings, "max_connections = 100", ""].join("\n"), { mode: 0o644 });
  const options = `-c config_file=${join(folder, "own.conf")} -D ${data}`;
  run(folder, "pg_ctl", "-D", data, "-w", "-l", join(folder, "log"), "-o", options, "start");
  return {
    options: { host: "127.0.0.1", port, user: "postgres", database: "postgres" },
    stop() {
      run(folder, "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
