/** Opens the store that a URL names. */
import { memory, type Store } from "../index.ts";
import type { PostgresClient } from "../stores/postgres.ts";
import type { RedisLike } from "../stores/redis.ts";
import { messagesOf } from "./output.ts";
import type { Pages } from "./stored-keys.ts";
import { UsageError } from "./usage.ts";

/** A client of a server, and what ends its connections. */
export interface Connection<Client> {
  readonly client: Client;
  close(): Promise<void>;
}

/** Connects to the servers: each program has clients of its own. */
export interface Clients {
  redis(url: string): Promise<Connection<RedisLike>>;
  postgres(url: string): Promise<Connection<PostgresClient>>;
}

/** Settings of {@link openStore}. */
export interface StoreSettings {
  /** What the keys of Redis begin with; default `"tidegate:"`. */
  readonly prefix?: string | undefined;
  /** The schema in PostgreSQL; default `"tidegate"`. */
  readonly schema?: string | undefined;
  /** Whether to create or upgrade the schema of PostgreSQL first. */
  readonly migrate?: boolean | undefined;
  /** How long the limiter's calls wait, ms: a statement of PostgreSQL may take as long, and at least a second. */
  readonly timeout?: number | undefined;
}

/** A store, and what ends its connections. */
export interface OpenStore {
  readonly store: Store;
  /** The URL without its password, for logs. */
  readonly shown: string;
  /** The keys that the store holds; absent if it cannot list them. */
  readonly keys?: (() => Pages) | undefined;
  /** States evicted before they were full, if the store counts them. */
  readonly stats: { stats(): { evicted: number } } | undefined;
  close(): Promise<void>;
}

/** The stores that a URL can name. */
export type StoreKind = "memory" | "file" | "redis" | "postgres";

const KINDS: Readonly<Record<StoreKind, { readonly pattern: RegExp; readonly forms: readonly string[] }>> = {
  memory: { pattern: /^memory$/, forms: ["memory"] },
  file: { pattern: /^file:./, forms: ["file:<folder>"] },
  redis: { pattern: /^rediss?:\/\/./, forms: ["redis://<host>:<port>", "rediss://…"] },
  postgres: { pattern: /^postgres(ql)?:\/\/./, forms: ["postgres://<user>@<host>/<database>"] },
};
const ALL_KINDS = Object.keys(KINDS) as StoreKind[];

/** The URL without its password: of its user, and in its query. An error also shows what is no URL, by mistake. */
export const masked = (url: string): string =>
  url
    .replace(/(\/\/[^/:@]*:|^[^/:@]*:(?!\/\/)).*@/, "$1***@")
    .replace(/((?:^|[?&\s])[^=?&#\s]*password=)(?:'[^']*'|[^&#\s]*)/gi, "$1***");

/**
 * The store that a URL names. Throws a {@link UsageError} if it is none, which names the stores that the command
 * `takes`; default all.
 */
export function storeKind(url: string, takes: readonly StoreKind[] = ALL_KINDS): StoreKind {
  const kind = ALL_KINDS.find((one) => KINDS[one].pattern.test(url));
  const isWhole = kind === "memory" || kind === "file" || URL.canParse(url);
  if (kind === "redis" && isWhole && !/^\/?\d*$/.test(new URL(url).pathname)) {
    throw new UsageError(`--store ends with the number of a database, as redis://<host>/0 does; got ${masked(url)}`);
  }
  if (kind !== undefined && isWhole) return kind;
  const forms = takes.flatMap((one) => KINDS[one].forms);
  const last = forms.pop();
  const rule = forms.length === 0 ? last : `${forms.join(", ")} or ${last}`;
  throw new UsageError(`--store must be ${rule}; got ${JSON.stringify(masked(url))}`);
}

/** The URL of `--store`, which the command needs, and its kind, as {@link storeKind} has it; never `memory`. */
export function sharedStore(
  url: string | undefined,
  command: string,
  takes: readonly StoreKind[],
): readonly [url: string, StoreKind] {
  if (url === undefined)
    throw new UsageError(`${command} needs --store, the store of the app; see tidegate help ${command}`);
  const kind = storeKind(url, takes);
  if (kind !== "memory") return [url, kind];
  throw new UsageError('--store must be a store that processes share; got "memory", which belongs to one process');
}

/** The folder of `file:<folder>`; a URL if it is `file://`. */
export const folderOf = (url: string): string | URL =>
  url.startsWith("file://") ? new URL(url) : url.slice("file:".length);

function refuse(url: string, kind: StoreKind, { prefix, schema, migrate }: StoreSettings): void {
  const [option] = [
    prefix !== undefined && kind !== "redis" && "--prefix is of Redis, redis://…",
    schema !== undefined && kind !== "postgres" && "--schema is of PostgreSQL, postgres://…",
    migrate === true && kind !== "postgres" && "--migrate needs a store with a schema, postgres://…",
  ].filter((text) => text !== false);
  if (option !== undefined) throw new UsageError(`${option}; got --store ${masked(url)}`);
}

/** The connection, whose end is no error: what was done before stays done, and an earlier error is the one to report. */
async function connected<C>(url: string, connecting: Promise<Connection<C>>): Promise<Connection<C>> {
  try {
    const { client, close } = await connecting;
    return { client, close: () => close().catch(() => {}) };
  } catch (error) {
    // Some clients decode the URL, and throw if a password has a `%` of its own.
    if (!(error instanceof URIError)) throw error;
    throw new UsageError(`--store has a % that is not part of an escape: write it as %25; got ${masked(url)}`);
  }
}

async function openRedis(url: string, clients: Clients, { prefix }: StoreSettings): Promise<OpenStore> {
  const { redis } = await import("../stores/redis.ts");
  const { redisKeys } = await import("./stored-keys.ts");
  const { client, close } = await connected(url, clients.redis(url));
  const store = await orClose(close, () => redis(client, { prefix }));
  return { store, shown: masked(url), keys: () => redisKeys(client, prefix), stats: undefined, close };
}

async function openPostgres(
  url: string,
  clients: Clients,
  { schema, migrate, timeout = 0 }: StoreSettings,
): Promise<OpenStore> {
  const { postgres } = await import("../stores/postgres.ts");
  const { postgresKeys } = await import("./stored-keys.ts");
  const { client, close } = await connected(url, clients.postgres(url));
  const store = await orClose(close, async () => {
    const made = postgres(client, { schema, statementTimeout: Math.ceil(Math.max(timeout, 1000)) });
    if (migrate !== true) return made;
    await made.migrate().catch((error: unknown) => {
      throw new UsageError(`--migrate failed on ${masked(url)}: ${messagesOf(error)}`);
    });
    return made;
  });
  return { store, shown: masked(url), keys: () => postgresKeys(client, schema), stats: undefined, close };
}

/** Makes a store on a connection, which is closed if that fails: it would keep the process alive. */
async function orClose<T>(close: () => Promise<void>, make: () => T | Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    await close();
    throw error;
  }
}

async function openFile(url: string): Promise<OpenStore> {
  const { file } = await import("../stores/file.ts");
  try {
    const store = file(folderOf(url));
    return { store, shown: `file:${store.path}`, stats: store, close: async () => store.close() };
  } catch (error) {
    throw new UsageError(`--store ${url} cannot be opened: ${messagesOf(error)}`);
  }
}

/**
 * Opens the store of a URL: `memory`, `file:<folder>`, `redis://`, `rediss://`, `postgres://` or `postgresql://`.
 *
 * Throws a {@link UsageError} if it is none of these, a setting is of another store, or the folder cannot be opened. What a
 * client rejects with is thrown on.
 */
export async function openStore(url: string, clients: Clients, settings: StoreSettings): Promise<OpenStore> {
  const kind = storeKind(url);
  refuse(url, kind, settings);
  if (kind === "redis") return openRedis(url, clients, settings);
  if (kind === "postgres") return openPostgres(url, clients, settings);
  if (kind === "file") return openFile(url);
  const store = memory();
  return { store, shown: url, stats: store, close: async () => {} };
}
