/** The shapes of clients that the store is tested with. */
import { MemcacheClient } from "memcache-client";
import Memcached from "memcached";
import type { MemcachedLike } from "tidegate/memcached";

/** An open client, and how to close it. */
export interface Open {
  readonly client: MemcachedLike;
  /** What the client itself puts before every key. */
  readonly namespace: string;
  close(): void;
}

function callbacks(address: string, namespace: string): Open {
  // A server that fails is tried again immediately, not after half a minute, and never given up: the client would run `ping`.
  const client = new Memcached(address, { namespace, retries: 0, retry: 10, failures: 1e6, timeout: 60_000 });
  return { client, namespace, close: () => client.end() };
}

export const clients: Readonly<Record<string, (address: string) => Open>> = {
  memcached: (address) => callbacks(address, ""),
  "memcached with a namespace": (address) => callbacks(address, "mine:"),
  "memcache-client": (address) => {
    const client = new MemcacheClient({ server: address, ignoreNotStored: true, cmdTimeout: 60_000 });
    return { client, namespace: "", close: () => client.shutdown() };
  },
  "memcache-client of four connections": (address) => {
    const client = new MemcacheClient({ server: { server: address, maxConnections: 4 }, cmdTimeout: 60_000 });
    return { client, namespace: "", close: () => client.shutdown() };
  },
};
