/** A REST server in front of a real Redis, as Upstash documents its own: `POST /`, `/pipeline` and `/multi-exec`. */

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Redis } from "ioredis";

type Reply = { result: unknown } | { error: string };

const encoded = (value: unknown): unknown => {
  if (typeof value === "string") return value === "OK" ? value : Buffer.from(value).toString("base64");
  return Array.isArray(value) ? value.map(encoded) : value;
};

export class RestServer {
  /** Every command that came, the first word in lower case. */
  readonly commands: string[][] = [];
  /** How many requests came. */
  requests = 0;
  /** How many of the next requests are carried out without a reply: the connection closes. */
  repliesToLose = 0;
  readonly #server: Server;
  readonly #redis: Redis;

  private constructor(server: Server, redis: Redis) {
    this.#server = server;
    this.#redis = redis;
  }

  static async start(port: number): Promise<RestServer> {
    const server = createServer();
    const rest = new RestServer(server, new Redis({ host: "127.0.0.1", port }));
    server.on("request", async (request: IncomingMessage, response) => {
      rest.requests++;
      const { status, body } = await rest.#answer(request);
      if (rest.repliesToLose > 0) {
        rest.repliesToLose--;
        return void response.destroy();
      }
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return rest;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How many commands of this name came. */
  count(name: string): number {
    return this.commands.filter(([word]) => word === name).length;
  }

  async #answer(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
    let text = "";
    for await (const chunk of request) text += chunk;
    const base64 = request.headers["upstash-encoding"] === "base64";
    if (request.headers.authorization !== "Bearer secret") return { status: 401, body: { error: "WRONGPASS" } };
    const body = JSON.parse(text);
    if (request.url === "/") {
      const reply = await this.#run(body, base64);
      return { status: "error" in reply ? 400 : 200, body: reply };
    }
    const replies: Reply[] = [];
    for (const command of body) replies.push(await this.#run(command, base64));
    return { status: 200, body: replies };
  }

  async #run(command: unknown[], base64: boolean): Promise<Reply> {
    const [name = "", ...args] = command.map(String);
    this.commands.push([name.toLowerCase(), ...args]);
    try {
      const result = await this.#redis.call(name, ...args);
      return { result: base64 ? encoded(result) : result };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }

  async stop(): Promise<void> {
    this.#redis.disconnect();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
