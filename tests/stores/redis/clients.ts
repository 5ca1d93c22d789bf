/** The shapes of clients that the store is tested with. */

import { GlideClient, GlideClusterClient } from "@valkey/valkey-glide";
import { Cluster, Redis } from "ioredis";
import { createClient, createClientPool, createCluster, createSentinel } from "redis";
import { createClient as createClient4 } from "redis-4";
import type { RedisLike, RestRedisLike } from "tidegate/redis";

/** A client as REST ones are: two methods, arguments in arrays, answers as text. It speaks to a real server. */
export function restLike(client: Redis): RestRedisLike {
  return {
    evalsha: (sha, keys, args) => client.evalsha(sha, keys.length, ...keys, ...args),
    eval: (script, keys, args) => client.eval(script, keys.length, ...keys, ...args),
  };
}

/** An open client, and how to close it. */
export interface Open {
  readonly client: RedisLike;
  close(): void;
}

const quiet = <C extends { on(event: "error", listener: () => void): unknown }>(client: C): C => {
  client.on("error", () => {});
  return client;
};

/** Its own limits of 250 ms and 2 s would fail calls on a busy machine. */
const unhurried = { requestTimeout: 60_000, advancedConfiguration: { connectionTimeout: 60_000 } };

/** Clients of one server. */
export const single: Readonly<Record<string, (port: number) => Promise<Open>>> = {
  "ioredis Redis": async (port) => {
    const client = quiet(new Redis({ host: "127.0.0.1", port }));
    return { client, close: () => client.disconnect() };
  },
  "ioredis Redis with auto-pipelining and a keyPrefix": async (port) => {
    const client = quiet(new Redis({ host: "127.0.0.1", port, enableAutoPipelining: true, keyPrefix: "mine:" }));
    return { client, close: () => client.disconnect() };
  },
  "node-redis client": async (port) => {
    const client = quiet(createClient({ socket: { host: "127.0.0.1", port } }));
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  "node-redis pool": async (port) => {
    const client = quiet(createClientPool({ socket: { host: "127.0.0.1", port } }));
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  "node-redis 4 client": async (port) => {
    const client = quiet(createClient4({ socket: { host: "127.0.0.1", port } }));
    await client.connect();
    return { client, close: () => void client.disconnect() };
  },
  "Valkey GLIDE": async (port) => {
    const client = await GlideClient.createClient({ addresses: [{ host: "127.0.0.1", port }], ...unhurried });
    return { client, close: () => client.close() };
  },
  "a REST client": async (port) => {
    const client = quiet(new Redis({ host: "127.0.0.1", port }));
    return { client: restLike(client), close: () => client.disconnect() };
  },
};

/** Clients of a cluster. */
export const clustered: Readonly<Record<string, (ports: readonly number[]) => Promise<Open>>> = {
  "ioredis Cluster": async (ports) => {
    const client = quiet(new Cluster(ports.map((port) => ({ host: "127.0.0.1", port }))));
    return { client, close: () => client.disconnect() };
  },
  "node-redis cluster": async (ports) => {
    const client = quiet(createCluster({ rootNodes: ports.map((port) => ({ socket: { host: "127.0.0.1", port } })) }));
    await client.connect();
    return { client, close: () => client.destroy() };
  },
};

/** Valkey GLIDE's client of a cluster. It does not report which master serves a slot. */
export const glideCluster = async (ports: readonly number[]): Promise<Open> => {
  const addresses = ports.map((port) => ({ host: "127.0.0.1", port }));
  const client = await GlideClusterClient.createClient({ addresses, ...unhurried });
  return { client, close: () => client.close() };
};

/** Clients that ask a Sentinel where the master named "tide" is. */
export const sentinels: Readonly<Record<string, (port: number) => Promise<Open>>> = {
  "ioredis Redis": async (port) => {
    const client = quiet(new Redis({ sentinels: [{ host: "127.0.0.1", port }], name: "tide" }));
    return { client, close: () => client.disconnect() };
  },
  "node-redis sentinel": async (port) => {
    const client = quiet(createSentinel({ name: "tide", sentinelRootNodes: [{ host: "127.0.0.1", port }] }));
    await client.connect();
    return { client, close: () => client.destroy() };
  },
};
