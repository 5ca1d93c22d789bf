/** The clients of the stores, which the package includes. */
import { once } from "node:events";
import { Socket } from "node:net";
import { type Clients, messagesOf, UsageError } from "tidegate/cli";

/** How long the start waits for a first connection, in ms. */
const FIRST = 2000;
/** ms without an answer after which a connection to Redis is replaced: it may be half-open. */
const SILENT = 1000;

/**
 * The clients; a call waits for `timeout` ms. `report` gets why a client of Redis has no connection, and `undefined` when it has
 * one again: a call that waits for it only ends without an answer.
 */
export const clientsOf = (report: (error: unknown) => void, timeout = SILENT): Clients => ({
  async redis(url) {
    const { Redis } = await import("ioredis");
    const client = new Redis(url, {
      connectionName: "tidegate-serve",
      // If the server is down, ioredis waits 2 s for the end of a connection that has ended.
      disconnectTimeout: 0,
      socketTimeout: Math.max(SILENT, timeout),
      // After a failover behind one address, the connection to the former master would remain.
      reconnectOnError: ({ message }) => message.includes("READONLY"),
    });
    client.on("error", report).on("ready", () => report(undefined));
    await once(client, "ready", { signal: AbortSignal.timeout(FIRST) }).catch((error) => {
      // Other failures may pass. After this one ioredis would go on in database 0.
      if (error.command?.name !== "select") return;
      client.disconnect();
      throw new UsageError(`--store has a database that the server refuses: ${messagesOf(error)}`);
    });
    // Not by QUIT, which a server that hangs never answers. No call is under way by then.
    return { client, close: async () => client.disconnect() };
  },
  async postgres(url) {
    const { default: pg } = await import("pg");
    // Decisions have their own deadline; a migration has not.
    const patience = { connectionTimeoutMillis: 10_000 };
    const sockets = new Set<Socket>();
    const stream = (): Socket => {
      const socket = new Socket();
      sockets.add(socket.once("close", () => sockets.delete(socket)));
      return socket;
    };
    const client = new pg.Pool({ connectionString: url, application_name: "tidegate-serve", stream, ...patience });
    // Calls reject with the reason; if the connection was idle, the next call does.
    client.on("error", () => {});
    const close = async (): Promise<void> => {
      const ended = client.end();
      // A server that hangs never closes its end, and answers no statement under way.
      for (const socket of sockets) socket.destroy();
      await ended;
    };
    return { client, close };
  },
});
