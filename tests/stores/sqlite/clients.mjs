// Every client that the store takes, open on a file of its own kind or, by a URL, on a server. Also loaded by programs in Bun and Node.js 22.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const hosts = createRequire(new URL("../../hosts/package.json", import.meta.url));

function onServer(name, url) {
  const client = hosts(name).createClient({ url });
  return { client, close: () => client.close() };
}

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
    if (URL.canParse(path)) return onServer("@libsql/client", path);
    const client = hosts("@libsql/client").createClient({ url: `file:${path}` });
    await client.execute("PRAGMA journal_mode = WAL");
    await client.execute("PRAGMA synchronous = OFF");
    return { client, close: () => client.close() };
  },
  "@tursodatabase/serverless/compat": async (url) => onServer("@tursodatabase/serverless/compat", url),
  async "@tursodatabase/serverless"(url) {
    const client = hosts("@tursodatabase/serverless").connect({ url, defaultQueryTimeout: 1000 });
    return { client, close: () => client.close() };
  },
  async "@tursodatabase/database"(path) {
    const { connect } = await import(pathToFileURL(hosts.resolve("@tursodatabase/database")).href);
    const client = await connect(path);
    return { client, close: () => client.close() };
  },
};
