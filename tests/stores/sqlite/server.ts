/** A libSQL server, the one behind Turso, of a test's own on a free loopback port. */
import { freePort } from "../../support/ports.ts";
import { ServerProcess } from "../../support/processes.ts";

export class LibSqlServer {
  readonly port: number;
  readonly #program: string;
  readonly #folder: string;
  #process: ServerProcess | undefined;

  private constructor(program: string, folder: string, port: number) {
    this.#program = program;
    this.#folder = folder;
    this.port = port;
  }

  static async start(program: string, folder: string): Promise<LibSqlServer> {
    const server = new LibSqlServer(program, folder, await freePort());
    await server.up();
    return server;
  }

  /** Starts the process on the same data; returns once it answers. */
  async up(): Promise<void> {
    const address = `127.0.0.1:${this.port}`;
    const args = ["--db-path", this.#folder, "--http-listen-addr", address, "--no-welcome"];
    this.#process = new ServerProcess(this.#program, args);
    await this.#process.answers(() => fetch(`http://${address}/health`));
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.signal(signal);
  }

  /** Kills the process as a crash would, and waits until it is gone. */
  async stop(): Promise<void> {
    await this.#process?.stop();
  }
}
