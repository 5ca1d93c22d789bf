/**
 * A server that speaks MongoDB's protocol, on a free loopback port: NX-27017, a Python package, in a virtual environment.
 * No package of a registry contains `mongod`. It has one transaction at a time for all connections.
 */
import { join } from "node:path";
import { MongoClient, type MongoClientOptions } from "mongodb";
import { decodeText } from "../../../npm/tidegate/src/limit/codec.ts";
import { wellFormed } from "../../../npm/tidegate/src/stores/record.ts";
import type { Stored } from "tidegate/testing";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { freePort } from "../../support/ports.ts";
import { ServerProcess } from "../../support/processes.ts";
import { pythonProgram } from "../../support/python.ts";

/** The program of the server, with the versions of what it requires. */
const program = () => pythonProgram("nx-27017", "nx-27017==0.8.1", "neosqlite==1.17.2", "pymongo==4.20.0");

export class MongoServer {
  readonly url: string;
  readonly client: MongoClient;
  readonly #process: ServerProcess;
  readonly #folder: string;

  private constructor(port: number, process: ServerProcess, folder: string) {
    this.url = `mongodb://127.0.0.1:${port}/?directConnection=true`;
    this.client = this.connect();
    this.#process = process;
    this.#folder = folder;
  }

  static async start(): Promise<MongoServer> {
    const port = await freePort();
    const folder = temporaryFolder("mongodb");
    const files = ["--log-file", join(folder, "log"), "--pid-file", join(folder, "pid")];
    const args = ["--db", join(folder, "data.db"), "--host", "127.0.0.1", "-p", `${port}`, ...files];
    const server = new MongoServer(port, new ServerProcess(await program(), args, { cwd: folder }), folder);
    await server.client.connect();
    return server;
  }

  connect(options: MongoClientOptions = {}): MongoClient {
    return new MongoClient(this.url, { serverSelectionTimeoutMS: 60_000, ...options });
  }

  /** The states of a collection, by identity. */
  stored(collection: string): Stored {
    return async (id) => {
      const row = await this.client
        .db("limits")
        .collection<{ _id: string; state: string | null }>(collection)
        .findOne({ _id: wellFormed(id) });
      return row?.state ? decodeText(row.state) : null;
    };
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.signal(signal);
  }

  async stop(): Promise<void> {
    await this.client.close(true);
    await this.#process.stop();
    remove(this.#folder);
  }
}
