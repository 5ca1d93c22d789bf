/** A relay to a server that can be slow, stall, or lose replies of commands that the server carried out. */

import { connect, createServer, type Server, type Socket } from "node:net";

export class LossyProxy {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** How many of the next replies are lost, each with its connection. */
  lose = 0;
  lost = 0;
  /** ms by which each direction delays what it carries. */
  delay = 0;
  /** The port on which new connections end. */
  target: number;
  /** All that it carries from now on waits for this. */
  gate: Promise<void> | undefined;

  private constructor(server: Server, port: number, target: number) {
    this.#server = server;
    this.port = port;
    this.target = target;
  }

  /** In front of the port `target`; on a free port, unless one is given. */
  static start(target: number, port = 0): Promise<LossyProxy> {
    return new Promise((resolve) => {
      const server = createServer();
      server.listen(port, "127.0.0.1", () => {
        const proxy = new LossyProxy(server, (server.address() as { port: number }).port, target);
        server.on("connection", (client) => proxy.#join(client, connect(proxy.target, "127.0.0.1")));
        resolve(proxy);
      });
    });
  }

  #join(client: Socket, upstream: Socket): void {
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on("data", (data) => this.#carry(data, upstream));
    upstream.on("data", (data) => {
      if (this.lose === 0) this.#carry(data, client);
      else {
        this.lose--;
        this.lost++;
        client.destroy();
      }
    });
  }

  #carry(data: Buffer, to: Socket): void {
    if (this.gate !== undefined) void this.gate.then(() => to.write(data));
    else if (this.delay === 0) to.write(data);
    else setTimeout(() => to.write(data), this.delay);
  }

  /** The open connections stay open and carry nothing from now on; new ones work. */
  stall(): void {
    for (const socket of this.#sockets) {
      socket.pause();
      socket.removeAllListeners("data");
    }
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
