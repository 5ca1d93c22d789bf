/** A PostgreSQL server of a test's own, on a free loopback port, in a folder that goes when it stops. */
import { execFile, execFileSync } from "node:child_process";
import { chownSync, closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { freePort } from "../../support/ports.ts";
import { ServerProcess } from "../../support/processes.ts";

const run = promisify(execFile);

/** The folder of the server's programs, or the one that `TIDEGATE_POSTGRES_BIN` names: Debian keeps them out of the PATH. */
function programs(): string {
  const named = process.env["TIDEGATE_POSTGRES_BIN"];
  if (named !== undefined) return named;
  const debian = "/usr/lib/postgresql";
  if (existsSync(debian)) {
    const versions = readdirSync(debian).sort((a, b) => Number(b) - Number(a));
    const found = versions.map((v) => join(debian, v, "bin")).find((bin) => existsSync(join(bin, "initdb")));
    if (found !== undefined) return found;
  }
  const path = execFileSync("sh", ["-c", "command -v initdb"], { encoding: "utf8" }).trim();
  return path.slice(0, -"/initdb".length);
}

/** A running server. */
export class Server {
  readonly #bin = programs();
  readonly #folder = temporaryFolder("postgres");
  readonly host = "127.0.0.1";
  readonly user = "postgres";
  readonly database = "postgres";
  port = 0;

  get #data(): string {
    return join(this.#folder, "data");
  }

  /** What pg and postgres.js connect with. */
  get options() {
    return { host: this.host, port: this.port, user: this.user, database: this.database };
  }

  /** Runs one of the server's programs; initdb and postgres refuse root. */
  #command(program: string, args: readonly string[]): [string, string[]] {
    const path = join(this.#bin, program);
    if (process.getuid?.() !== 0) return [path, [...args]];
    return ["setpriv", ["--reuid=postgres", "--regid=postgres", "--init-groups", path, ...args]];
  }

  async #run(program: string, ...args: string[]): Promise<void> {
    const [command, all] = this.#command(program, args);
    await run(command, all, { cwd: this.#folder });
  }

  async init(settings: Readonly<Record<string, string | number>>): Promise<void> {
    if (process.getuid?.() === 0) {
      const id = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
      chownSync(this.#folder, id("-u"), id("-g"));
    }
    const made = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
    await this.#run("initdb", "-D", this.#data, "-U", this.user, ...made);
    this.port = await freePort();
    const all = {
      port: this.port,
      listen_addresses: this.host,
      unix_socket_directories: "",
      max_connections: 100,
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'`);
    writeFileSync(join(this.#folder, "own.conf"), lines.join("\n"), { mode: 0o644 });
    await this.start();
  }

  /** As a child of this process, with which it ends: pg_ctl would leave it running after Ctrl-C. */
  async start(): Promise<void> {
    const args = ["-D", this.#data, "-c", `config_file=${join(this.#folder, "own.conf")}`];
    const log = openSync(join(this.#folder, "log"), "a");
    const server = new ServerProcess(...this.#command("postgres", args), {
      cwd: this.#folder,
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    await server
      .answers(() => this.#connects())
      .catch((error: unknown) => {
        throw new Error(`the server did not start: ${this.log()}`, { cause: error });
      });
  }

  async #connects(): Promise<void> {
    const client = new Client(this.options);
    await client.connect();
    await client.end();
  }

  log(): string {
    const path = join(this.#folder, "log");
    return existsSync(path) ? readFileSync(path, "utf8").slice(-2000) : "no log";
  }

  /** Ends it at once, as a crash does. */
  async stop(mode: "fast" | "immediate" = "immediate"): Promise<void> {
    await this.#run("pg_ctl", "-D", this.#data, "-w", "-t", "600", "-m", mode, "stop");
  }

  /** Every process of the server: the first is the postmaster. */
  processes(): number[] {
    const postmaster = Number(readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n")[0]);
    const children = execFileSync("ps", ["-o", "pid=", "--ppid", String(postmaster)], { encoding: "utf8" });
    return [postmaster, ...children.trim().split(/\s+/).map(Number)];
  }

  /** Lets every process stand still (or go on): connections stay, nothing answers. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    for (const pid of this.processes()) {
      try {
        process.kill(pid, signal);
      } catch {
        // It ended in between.
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async close(): Promise<void> {
    if (existsSync(join(this.#data, "postmaster.pid"))) await this.stop().catch(() => {});
    remove(this.#folder);
  }
}

/** Starts a server with these settings on top of the defaults. */
export async function startServer(settings: Readonly<Record<string, string | number>> = {}): Promise<Server> {
  const server = new Server();
  await server.init(settings);
  return server;
}
