/**
 * Amazon's DynamoDB Local on a free loopback port. Its jar is in the npm package amplify-dynamodb-simulator, which is
 * unpacked without its dependencies.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { DynamoDB, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { decode } from "../../../npm/tidegate/src/limit/codec.ts";
import { wellFormed } from "../../../npm/tidegate/src/stores/record.ts";
import type { Stored } from "tidegate/testing";
import { remove } from "../../support/folders.ts";
import { freePort } from "../../support/ports.ts";
import { ServerProcess } from "../../support/processes.ts";

const run = promisify(execFile);
const PACKAGE = "amplify-dynamodb-simulator@2.9.30";
const cache = fileURLToPath(new URL("../../../node_modules/.cache/tidegate/", import.meta.url));
const npm = process.platform === "win32" ? "npm.cmd" : "npm";

/** The folder of the jar, unpacked once. */
async function emulator(): Promise<string> {
  const folder = join(cache, PACKAGE);
  if (!existsSync(folder)) {
    await mkdir(cache, { recursive: true });
    const temporary = await mkdtemp(join(cache, "dynamodb-"));
    await run(npm, ["pack", PACKAGE, "--silent", "--pack-destination", temporary], { cwd: temporary });
    const [archive] = await readdir(temporary);
    await run("tar", ["-xzf", archive as string], { cwd: temporary });
    // Another test file may have been faster.
    await rename(join(temporary, "package"), folder).catch(() => {});
    remove(temporary);
  }
  return join(folder, "emulator");
}

export class DynamoDbServer {
  readonly endpoint: string;
  readonly client: DynamoDB;
  readonly #process: ServerProcess;

  private constructor(port: number, process: ServerProcess) {
    this.endpoint = `http://127.0.0.1:${port}`;
    this.client = this.connect();
    this.#process = process;
  }

  static async start(): Promise<DynamoDbServer> {
    const port = await freePort();
    // It runs for a minute: optimizing itself, and collecting on several threads, would take longer than that.
    const brief = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];
    const jar = ["-Djava.library.path=DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"];
    const args = [...brief, ...jar, "-inMemory", "-sharedDb", "-disableTelemetry", "-port", `${port}`];
    const process = new ServerProcess("java", args, { cwd: await emulator() });
    const server = new DynamoDbServer(port, process);
    await process.answers(() => server.client.listTables({}));
    return server;
  }

  connect(config: DynamoDBClientConfig = {}): DynamoDB {
    const credentials = { accessKeyId: "local", secretAccessKey: "local" };
    return new DynamoDB({ endpoint: this.endpoint, region: "us-east-1", credentials, ...config });
  }

  async createTable(TableName: string): Promise<string> {
    await this.client.createTable({
      TableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
    });
    return TableName;
  }

  /** The states of a table, by identity. */
  stored(TableName: string): Stored {
    return async (id) => {
      const { Item } = await this.client.getItem({ TableName, Key: { id: { S: wellFormed(id) } } });
      return Item === undefined ? null : decode(Item["state"]?.B as Uint8Array);
    };
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.signal(signal);
  }

  async stop(): Promise<void> {
    this.client.destroy();
    await this.#process.stop();
  }
}
