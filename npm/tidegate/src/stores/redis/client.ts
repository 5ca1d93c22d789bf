/** The clients that a store takes, told apart by their shape; and one way to run a script on each of them. */

import { InputError, showInstead } from "../../limit/errors.ts";

/** ioredis and what is shaped like it: `Redis` (also with Sentinel) and `Cluster`. */
export interface IoredisLike {
  evalsha(sha: string, keys: number, ...args: string[]): Promise<unknown>;
  eval(script: string, keys: number, ...args: string[]): Promise<unknown>;
}

/** node-redis: a client, a pool, a cluster or a sentinel. */
export interface NodeRedisLike {
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  withTypeMapping(mapping: Record<number, unknown>): unknown;
}

/** A REST client such as Upstash's. Set its own retries to none: a request that was sent may have been carried out. */
export interface RestRedisLike {
  evalsha(sha: string, keys: string[], args: string[]): Promise<unknown>;
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
}

/** Any of the clients that {@link redis} takes. */
export type RedisLike = IoredisLike | NodeRedisLike | RestRedisLike;

/** A client, as the store uses it. */
export interface Link {
  /** Whether answers come as text rather than as bytes. */
  readonly text: boolean;
  /** Whether keys live on several servers, by slot. */
  readonly cluster: boolean;
  /** The master that serves a slot of the cluster, `host:port`, as far as the client has found out. */
  masterOf(slot: number): string | undefined;
  /** What the client itself puts before every key. */
  readonly keyPrefix: string;
  /** Runs the script by its digest, or whole. */
  run(whole: boolean, script: string, keys: string[], args: string[]): Promise<unknown>;
}

/** What ioredis has besides, and its types do not tell: the same, answering with bytes. */
interface IoredisBytes {
  readonly options?: object;
  /** Of a cluster: for each slot the master, then its replicas. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  sendCommand(command: object, ...rest: unknown[]): unknown;
  evalshaBuffer(sha: string, many: number, keys: string[], args: string[]): Promise<unknown>;
  evalBuffer(script: string, many: number, keys: string[], args: string[]): Promise<unknown>;
}

/** What a cluster of node-redis has besides. */
interface NodeRedisSlots extends NodeRedisLike {
  readonly slots?: readonly ({ readonly master?: { readonly address?: string } } | undefined)[];
}

/** RESP's type byte of bulk strings, `$`. */
const BULK_STRING = 36;

const CLIENTS =
  "a Redis client: ioredis (`Redis` or `Cluster`), node-redis (a client, pool, cluster or sentinel), " +
  "or one with `eval(script, keys, args)` and `evalsha(sha, keys, args)`";

/** Says how to run a script on this client, or throws where it is none that is known. */
export function linkTo(client: RedisLike): Link {
  const at = Object(client) as Record<string, unknown>;
  const has = (method: string) => typeof at[method] === "function";
  const keyPrefix = textOf(at["options"], "keyPrefix") ?? textOf(at["_options"], "keyPrefix") ?? "";
  if (has("evalSha") && has("eval") && has("withTypeMapping")) {
    // Only a cluster of node-redis tells `masters` as an array.
    return nodeRedis(client as NodeRedisLike, "slots" in at && "masters" in at, keyPrefix);
  }
  if (has("evalshaBuffer") && has("evalBuffer"))
    return ioredis(client as unknown as IoredisBytes, at["isCluster"] === true, keyPrefix);
  if (has("evalsha") && has("eval")) return rest(client as RestRedisLike);
  throw new InputError("client", CLIENTS, client, showInstead(client));
}

function textOf(from: unknown, name: string): string | undefined {
  const value = (from as Record<string, unknown> | undefined)?.[name];
  return typeof value === "string" ? value : undefined;
}

function ioredis(client: IoredisBytes, cluster: boolean, keyPrefix: string): Link {
  // ioredis sends what was under way once more when it reconnects, which could take twice. A command that says it is
  // from the middle of a pipeline is rejected then instead; that is what this index says.
  const once = Object.create(client, {
    options: { value: { ...client.options, enableAutoPipelining: false } },
    sendCommand: {
      value: (command: { pipelineIndex?: number }, ...rest: unknown[]) => {
        command.pipelineIndex = -1;
        return client.sendCommand(command, ...rest);
      },
    },
  }) as IoredisBytes;
  return {
    text: false,
    cluster,
    masterOf: (slot) => client.slots?.[slot]?.[0],
    keyPrefix,
    run: (whole, script, keys, args) =>
      whole ? once.evalBuffer(script, keys.length, keys, args) : once.evalshaBuffer(script, keys.length, keys, args),
  };
}

function nodeRedis(client: NodeRedisLike, cluster: boolean, keyPrefix: string): Link {
  const bytes = client.withTypeMapping({ [BULK_STRING]: Buffer }) as NodeRedisLike;
  return {
    text: false,
    cluster,
    // The table is replaced when the client finds out anew.
    masterOf: (slot) => (client as NodeRedisSlots).slots?.[slot]?.master?.address,
    keyPrefix,
    run: (whole, script, keys, args) => {
      const options = { keys, arguments: args };
      return whole ? bytes.eval(script, options) : bytes.evalSha(script, options);
    },
  };
}

function rest(client: RestRedisLike): Link {
  return {
    text: true,
    cluster: false,
    masterOf: () => undefined,
    keyPrefix: "",
    run: (whole, script, keys, args) => (whole ? client.eval(script, keys, args) : client.evalsha(script, keys, args)),
  };
}
