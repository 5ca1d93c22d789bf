/** The clients of the project in the current folder: the package has none of its own. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { StoreError } from "../limit/errors.ts";
import type { PostgresClient, UnsafeClient } from "../stores/postgres.ts";
import type { RedisLike } from "../stores/redis.ts";
import { UsageError } from "./usage.ts";
import { inTime, PATIENCE } from "./in-time.ts";
import { messagesOf } from "./output.ts";
import { type Clients, type Connection, masked } from "./store.ts";

/** What is used of the packages. */
interface Connecting {
  on(event: "error", listener: (error: Error) => void): unknown;
  connect(): Promise<unknown>;
}

type RedisClass = new (url: string, options: object) => RedisLike & Connecting & { disconnect(): void };
/** The class itself; it is its own field in versions of late. */
type Ioredis = RedisClass & { Redis?: RedisClass };
interface NodeRedis {
  createClient(options: object): RedisLike &
    Connecting & {
      destroy?(): void;
      disconnect(): Promise<void>;
      readonly isOpen?: boolean;
      end?(flush: boolean): void;
    };
}
interface Pg {
  Client: new (options: {
    connectionString: string;
    connectionTimeoutMillis: number;
  }) => PostgresClient & Connecting & { end(): Promise<void> };
}
type Postgres = (url: string, options: object) => UnsafeClient & { end(options: { timeout: number }): Promise<void> };

/** The project's package of this name; `undefined` if it is not installed. */
async function installed<T>(name: string): Promise<T | undefined> {
  let path: string;
  try {
    path = createRequire(join(process.cwd(), "package.json")).resolve(name);
  } catch {
    return undefined;
  }
  const loaded = (await import(pathToFileURL(path).href)) as { default?: T };
  return loaded.default ?? (loaded as T);
}

const absent = (first: string, second: string): UsageError =>
  new UsageError(`neither ${first} nor ${second} is installed in ${process.cwd()}: run npm install ${first}`);

/** Connects. The first error that the client reports is the reason; what `connect` rejects with may be that it is closed. */
async function connected<C extends Connecting>(
  store: string,
  url: string,
  client: C,
  close: () => unknown,
): Promise<Connection<C>> {
  let reason: Error | undefined;
  // Without a listener a lost connection would end the process; the call under way rejects with it.
  client.on("error", (error) => {
    reason ??= error;
  });
  try {
    // A server may accept the connection and then send nothing.
    await inTime("connection", client.connect());
    // If the server refuses the database, ioredis reports it and goes on in database 0.
    if (reason !== undefined) throw reason;
  } catch (error) {
    const cause = reason ?? error;
    // What is left open would keep the process running; the server may not answer this either.
    Promise.resolve(close()).catch(() => {});
    throw new StoreError(messagesOf(cause), { store, operation: "connect", identity: masked(url), cause });
  }
  return { client, close: async () => void (await close()) };
}

async function redis(url: string): Promise<Connection<RedisLike>> {
  const ioredis = await installed<Ioredis>("ioredis");
  if (ioredis !== undefined) {
    const { Redis = ioredis } = ioredis;
    // One attempt: a person waits for the answer. If it fails, ioredis waits 2 s for the end of a connection that has ended.
    const client = new Redis(url, {
      lazyConnect: true,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      disconnectTimeout: 0,
    });
    return connected("redis", url, client, () => client.disconnect());
  }
  const nodeRedis = await installed<NodeRedis>("redis");
  if (nodeRedis === undefined) throw absent("ioredis", "redis");
  const client = nodeRedis.createClient({ url, socket: { reconnectStrategy: false } });
  if (client.isOpen === undefined) {
    // Version 3 connects by itself.
    client.end?.(true);
    throw new UsageError(`redis is older than version 4 in ${process.cwd()}: run npm install redis@latest`);
  }
  return connected("redis", url, client, () => {
    // Versions 4 and 5 throw where the connection has ended.
    if (client.isOpen !== true) return undefined;
    return client.destroy === undefined ? client.disconnect() : client.destroy();
  });
}

/** ms: what closes the socket, after the error of {@link connected}. `end` does not while the client connects. */
const LONGER = PATIENCE + 1000;

async function postgres(url: string): Promise<Connection<PostgresClient>> {
  const pg = await installed<Pg>("pg");
  if (pg !== undefined) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: LONGER });
    return connected("postgres", url, client, () => client.end());
  }
  const connect = await installed<Postgres>("postgres");
  if (connect === undefined) throw absent("pg", "postgres");
  const client = connect(url, { max: 1, connect_timeout: LONGER / 1000, onnotice: () => {} });
  // It connects with its first statement, which rejects with the reason.
  const first = { on: () => {}, connect: async () => client.unsafe("SELECT 1") };
  const { close } = await connected("postgres", url, first, () => client.end({ timeout: 5 }));
  return { client, close };
}

export const clients: Clients = { redis, postgres };
