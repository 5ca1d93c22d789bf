/**
 * A server of a test's own, on a free loopback port, in a folder that goes when it stops: MariaDB's, or the `mysqld` of MySQL
 * that `TIDEGATE_MYSQL_SERVER` names.
 */
import { execFileSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { createConnection } from "mysql2/promise";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { freePort } from "../../support/ports.ts";
import { ServerProcess } from "../../support/processes.ts";

// Debian keeps the server in /usr/sbin, which is not in the PATH of every user.
const env = { ...process.env, PATH: [process.env["PATH"], "/usr/sbin"].join(delimiter) };
const MYSQL = process.env["TIDEGATE_MYSQL_SERVER"];
export const isMariadb: boolean = MYSQL === undefined;
const OWN = ["--no-defaults", ...(process.getuid?.() === 0 ? ["--user=root"] : [])];

/** A running server, without a password for root. */
export class Server {
  readonly host = "127.0.0.1";
  readonly user = "root";
  readonly database = "test";
  readonly port: number;
  readonly #folder = temporaryFolder("mysql");
  #process: ServerProcess | undefined;

  private constructor(port: number) {
    this.port = port;
  }

  /** Starts a server with these options of its program. */
  static async start(...options: string[]): Promise<Server> {
    const server = new Server(await freePort());
    const [program, ...settings] = isMariadb
      ? ["mariadb-install-db", "--auth-root-authentication-method=normal", "--skip-test-db"]
      : [MYSQL as string, "--initialize-insecure"];
    execFileSync(program, [...OWN, `--datadir=${server.#data}`, ...settings], { env, stdio: "ignore" });
    await server.up(...options);
    return server;
  }

  /** What the clients connect with. */
  get options() {
    return { host: this.host, port: this.port, user: this.user, database: this.database };
  }
  get uri(): string {
    return `mysql://${this.user}@${this.host}:${this.port}/${this.database}`;
  }
  get #data(): string {
    return join(this.#folder, "data");
  }

  /** Starts the process; returns once it answers. */
  async up(...options: string[]): Promise<void> {
    const files = [`--datadir=${this.#data}`, `--socket=${join(this.#folder, "s")}`, `--pid-file=${this.#data}/pid`];
    // MySQL's root is of localhost, whose name it has to resolve. Debian's folder for its files is of another package.
    const own = isMariadb ? ["--skip-name-resolve"] : ["--mysqlx=OFF", "--secure-file-priv=NULL"];
    const net = [`--port=${this.port}`, `--bind-address=${this.host}`, ...own];
    this.#process = new ServerProcess(MYSQL ?? "mariadbd", [...OWN, ...files, ...net, ...options], { env });
    const { database, ...withoutDatabase } = this.options;
    await this.#process.answers(async () => {
      const connection = await createConnection(withoutDatabase);
      await connection.query(`CREATE DATABASE IF NOT EXISTS ${database}`);
      await connection.end();
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.signal(signal);
  }

  /** Kills the process as a crash would, and waits until it is gone. */
  async stop(): Promise<void> {
    await this.#process?.stop();
  }

  async close(): Promise<void> {
    await this.stop();
    remove(this.#folder);
  }
}

/** Options of a server that need not survive a crash of the machine. */
export const FAST = ["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--skip-log-bin"];
