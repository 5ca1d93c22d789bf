// Every client that the store takes, open on a file of its own kind. Also loaded by programs in Bun and Node.js 22.
import { createRequire } from "node:module";

const hosts = createRequire(new URL("../../hosts/package.json", import.meta.url));

/** Opens the client, and returns it with what closes it. */
export const clients = {
  async "node:sqlite"(path) {
    const { DatabaseSync } = await import("node:sqlite");
    const client = new DatabaseSync(path);
    client.exec(
      "PRAGMA busy_timeout = 1000; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA busy_timeout = 20",
    );
    return { client, close: () => client.close() };
  },
  async "bun:sqlite"(path) {
    const { Database } = await import("bun:sqlite");
    const client = new Database(path);
    client.run("PRAGMA busy_timeout = 1000");
    client.run("PRAGMA journal_mode = WAL");
    client.run("PRAGMA synchronous = OFF");
    client.run("PRAGMA busy_timeout = 20");
    return { client, close: () => client.close() };
  },
  async "better-sqlite3"(path) {
    const client = new (hosts("better-sqlite3"))(path, { timeout: 20 });
    client.pragma("journal_mode = WAL");
    client.pragma("synchronous = OFF");
    return { client, close: () => client.close() };
  },
  async "@libsql/client"(path) {
    const client = hosts("@libsql/client").createClient({ url: `file:${path}` });
    await client.execute("PRAGMA journal_mode = WAL");
    await client.execute("PRAGMA synchronous = OFF");
    return { client, close: () => client.close() };
  },
};
