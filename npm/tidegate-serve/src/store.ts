/** Opens a store by its URL. */
import { fileURLToPath } from "node:url";
import { memory } from "tidegate";
import type { Store } from "tidegate/store";
import { messagesOf } from "./log.ts";
import { UsageError } from "./usage.ts";

/** A store, and what ends its connections. */
export interface OpenStore {
  readonly store: Store;
  /** The URL without its password, for logs. */
  readonly shown: string;
  /** States evicted before they were full, where the store counts them. */
  readonly stats: { stats(): { evicted: number } } | undefined;
  close(): Promise<void>;
}

/** Settings of {@link openStore}. */
export interface StoreSettings {
  /** Whether to create or upgrade the schema of a database. */
  readonly migrate: boolean;
}

const RULE = "memory, file:<folder>, redis://<host>:<port>, rediss://… or postgres://<user>@<host>/<database>";

/** The URL without its password. */
const masked = (url: string): string => url.replace(/(\/\/[^/:@]*:).*@/, "$1***@");

async function openRedis(url: string): Promise<OpenStore> {
  const [{ Redis }, { redis }] = await Promise.all([import("ioredis"), import("tidegate/redis")]);
  const client = new Redis(url, { connectionName: "tidegate-serve" });
  // The limiter reports what fails, once and with its cause.
  client.on("error", () => {});
  return {
    store: redis(client),
    shown: masked(url),
    stats: undefined,
    close: async () => {
      if (client.status === "ready") await client.quit().catch(() => {});
      client.disconnect();
    },
  };
}

async function openPostgres(url: string, { migrate }: StoreSettings): Promise<OpenStore> {
  const [{ default: pg }, { postgres }] = await Promise.all([import("pg"), import("tidegate/postgres")]);
  const pool = new pg.Pool({ connectionString: url, application_name: "tidegate-serve" });
  pool.on("error", () => {});
  const store = postgres(pool);
  if (migrate) {
    await store.migrate().catch(async (error: unknown) => {
      await pool.end();
      throw new UsageError(`--migrate failed on ${masked(url)}: ${messagesOf(error)}`);
    });
  }
  return { store, shown: masked(url), stats: undefined, close: () => pool.end() };
}

async function openFile(url: string): Promise<OpenStore> {
  const { file } = await import("tidegate/file");
  const path = url.startsWith("file://") ? fileURLToPath(url) : url.slice("file:".length);
  const store = file(path);
  return { store, shown: `file:${path}`, stats: store, close: async () => store.close() };
}

/**
 * Opens the store of a URL: `memory`, `file:<folder>`, `redis://`, `rediss://`, `postgres://` or `postgresql://`.
 *
 * Throws a {@link UsageError} where it is none of these, or the folder cannot be opened. A server that is down is no error:
 * the client connects when it can.
 */
export async function openStore(url: string, settings: StoreSettings): Promise<OpenStore> {
  const [, scheme] = /^(memory$|file:.|rediss?:\/\/|postgres(?:ql)?:\/\/)/.exec(url) ?? [];
  if (scheme === undefined) throw new UsageError(`--store must be ${RULE}; got ${JSON.stringify(masked(url))}`);
  if (settings.migrate && !scheme.startsWith("postgres")) {
    throw new UsageError(`--migrate needs a store with a schema, postgres://…; got --store ${masked(url)}`);
  }
  try {
    if (scheme.startsWith("redis")) return await openRedis(url);
    if (scheme.startsWith("postgres")) return await openPostgres(url, settings);
    if (scheme.startsWith("file")) return await openFile(url);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--store ${masked(url)} cannot be opened: ${messagesOf(error)}`);
  }
  const store = memory();
  return { store, shown: url, stats: store, close: async () => {} };
}
