/** The clients that a store takes, by their shape, and one way to run a script on each of them. */

import { hasMethods } from "../../limit/checks.ts";
import { hide, InputError, messageOf, showClient } from "../../limit/errors.ts";
import type { Form } from "./script.ts";
import { requesterOf, commandSender } from "./upstash.ts";

/** ioredis and what is shaped like it: `Redis` (also with Sentinel) and `Cluster`. */
export interface IoredisLike {
  evalsha(sha: string, keys: number, ...args: string[]): Promise<unknown>;
  eval(script: string, keys: number, ...args: string[]): Promise<unknown>;
}

/** node-redis: a client, a pool, a cluster or a sentinel. */
export interface NodeRedisLike {
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  readonly isOpen: boolean;
  /** Absent in version 4. */
  withTypeMapping?(mapping: Record<number, unknown>): unknown;
}

/** Valkey GLIDE: `GlideClient` or `GlideClusterClient`. */
export interface GlideLike {
  customCommand(args: string[], options?: object): Promise<unknown>;
  invokeScript(...args: never[]): Promise<unknown>;
}

/** Bun's `RedisClient`. */
export interface BunRedisLike {
  send(command: string, args: string[]): Promise<unknown>;
  connect(): Promise<unknown>;
  readonly connected: boolean;
}

/**
 * A REST client such as Upstash's. The store sends without the retries of Upstash's and Vercel's. Turn off those of any
 * other client: a request that was sent may have been carried out.
 */
export interface RestRedisLike {
  evalsha(sha: string, keys: string[], args: string[]): Promise<unknown>;
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
}

/** Any of the clients that {@link redis} takes. */
export type RedisLike = IoredisLike | NodeRedisLike | GlideLike | BunRedisLike | RestRedisLike;

/** A client, as the store uses it. */
export interface Link {
  readonly form: Form;
  /** Whether keys live on several servers, by slot. */
  readonly cluster: boolean;
  /** The master that serves a slot of the cluster, `host:port`, as far as the client has found out. */
  masterOf(slot: number): string | undefined;
  /** What the client itself puts before every key. */
  readonly keyPrefix: string;
  /** Runs the script by its digest, or `whole`. */
  run(whole: boolean, script: string, keys: string[], args: string[]): Promise<unknown>;
  /** Ends when the client has connected for the first time, or has failed to; absent if it is connected. */
  readonly connecting?: Promise<unknown> | undefined;
}

const CLIENTS =
  "a Redis client: ioredis (`Redis` or `Cluster`), node-redis (a client of 4 or newer; of 5, also a pool, " +
  "cluster or sentinel), Valkey GLIDE, `Bun.RedisClient`, or one with `eval(script, keys, args)` and `evalsha(sha, keys, args)`";

/** How to run a script on this client. Throws if the client is not supported. */
export function linkTo(client: RedisLike): Link {
  const at = Object(client) as Record<string, unknown>;
  const has = (...methods: string[]): boolean => hasMethods(client, ...methods);
  const server = {
    form: "bytes",
    cluster: false,
    masterOf: () => undefined,
    keyPrefix: keyPrefixIn(at["options"]) ?? keyPrefixIn(at["_options"]) ?? "",
  } as const;
  // Version 4 in its legacy mode, which has `evalsha` too, replies by callbacks, and its cluster sends a script to any server.
  const isNodeRedis4 = "isOpen" in at && !has("evalsha") && !("slots" in at);
  if (has("evalSha", "eval") && (has("withTypeMapping") || isNodeRedis4)) return nodeRedis(client as NodeRedis, server);
  const isPipeline = at["isPipeline"] === true;
  if (has("evalshaBuffer", "evalBuffer") && !isPipeline) return ioredis(client as unknown as Ioredis, server);
  if (has("customCommand", "invokeScript")) {
    const glide = client as GlideLike;
    // Only a cluster takes a route. Of the decoders, 0 is bytes.
    const run = sending((command) => glide.customCommand(command, { decoder: 0 }));
    return { ...server, cluster: has("fcallWithRoute"), run };
  }
  if (has("send", "evalsha", "connect") && "connected" in at) {
    const bun = client as BunRedisLike;
    return {
      ...server,
      form: "text",
      connecting: bun.connected ? undefined : bun.connect().catch(() => {}),
      run: sending(([name, ...args]) => bun.send(name as string, args)),
    };
  }
  const requester = requesterOf(at);
  if (requester !== undefined) {
    return { ...server, form: "text", keyPrefix: "", run: sending(commandSender(requester)) };
  }
  // Versions of node-redis that reply by callbacks; a pipeline of ioredis replies when it is executed.
  const isOld = has("internal_send_command") || has("evalSha");
  if (has("evalsha", "eval") && !isOld && !isPipeline) {
    const rest = client as RestRedisLike;
    const run: Link["run"] = (whole, ...call) => (whole ? rest.eval(...call) : rest.evalsha(...call));
    return { ...server, form: "text", keyPrefix: "", run };
  }
  const older =
    "an older client of node-redis, a cluster of its version 4, a transaction, or one that replies by callbacks";
  const got = isOld ? older : showClient(client);
  throw new InputError("client", CLIENTS, client, got);
}

/** Runs the script on a client that sends any command. */
const sending =
  (send: (command: string[]) => Promise<unknown>): Link["run"] =>
  (whole, script, keys, args) =>
    send([whole ? "EVAL" : "EVALSHA", script, `${keys.length}`, ...keys, ...args]);

function keyPrefixIn(options: unknown): string | undefined {
  const { keyPrefix } = Object(options) as { keyPrefix?: unknown };
  return typeof keyPrefix === "string" ? keyPrefix : undefined;
}

interface Emitter {
  once(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** Waits under way: all stores of one client share its listeners, of which Node.js warns when there are more than ten. */
const waits = new WeakMap<Emitter, Promise<void>>();

function firstOf(client: Emitter, events: readonly string[]): Promise<void> {
  let wait = waits.get(client);
  if (wait === undefined) {
    wait = new Promise((resolve) => {
      const done = () => {
        for (const event of events) client.off(event, done);
        waits.delete(client);
        resolve();
      };
      for (const event of events) client.once(event, done);
    });
    waits.set(client, wait);
  }
  return wait;
}

type Server = Omit<Link, "run">;

/** What ioredis has besides what its types name: the same commands, replying with bytes. */
interface Ioredis extends Emitter {
  readonly isCluster?: boolean;
  readonly status?: string;
  readonly options?: object;
  /** Of a cluster: for each slot the master, then its replicas. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  /** Of a connection to one server; has the error with which the latest one ended that had one. */
  readonly connector?: { readonly firstError?: Error };
  connect(): Promise<unknown>;
  sendCommand(command: object, ...rest: unknown[]): unknown;
  evalshaBuffer(sha: string, ...args: unknown[]): Promise<unknown>;
  evalBuffer(script: string, ...args: unknown[]): Promise<unknown>;
}

function ioredis(client: Ioredis, server: Server): Link {
  // When it reconnects, ioredis sends what was under way once more, which could take twice. It rejects a command from
  // the middle of a pipeline instead; this index marks one.
  const once = Object.create(client, {
    options: { value: { ...client.options, enableAutoPipelining: false } },
    sendCommand: {
      value: (command: { pipelineIndex?: number; reject(error: Error): void }, ...rest: unknown[]) => {
        command.pipelineIndex = -1;
        const { reject } = command;
        const reply = client.sendCommand(command, ...rest);
        // Only a cluster replaces it: while a slot moves, it sends again what needs several of its keys, for longer than a call waits.
        const again = command.reject;
        if (again !== reject)
          command.reject = (error) => (/^TRYAGAIN /.test(error.message) ? reject : again).call(command, error);
        return reply;
      },
    },
  }) as Ioredis;
  if (client.status === "wait") void client.connect().catch(() => {});
  const starting = client.status === "connecting" || client.status === "connect";
  return {
    ...server,
    // The first versions of ioredis 4 have no `isCluster`.
    cluster: client.isCluster ?? client.slots !== undefined,
    masterOf: (slot) => client.slots?.[slot]?.[0],
    connecting: starting ? firstOf(client, ["ready", "close", "end"]) : undefined,
    run: (whole, script, keys, args) => {
      const name = whole ? "evalBuffer" : "evalshaBuffer";
      // An error from before a connection that is ready explains no failure of it.
      const past = client.status === "ready" ? client.connector?.firstError : undefined;
      return once[name](script, keys.length, keys, args).catch((error: unknown) => {
        const why = client.connector?.firstError;
        throw explained(error, client.status === "ready" || why === past ? undefined : why);
      });
    },
  };
}

/**
 * The client's errors have the command, which a log would print: the script, and the keys of other callers. Its own, which
 * are no reply of the server, do not have why there is no connection.
 */
function explained(error: unknown, why: Error | undefined): unknown {
  const { name, message } = Object(error) as { name?: unknown; message?: unknown };
  hide(error, "command");
  if (why === undefined || error === why || name === "ReplyError") return error;
  return new Error(`${String(message)} (the connection's last error: ${messageOf(why)})`, { cause: error });
}

/** What clients, pools and clusters of node-redis have besides; only a cluster has `masters`. */
interface NodeRedis extends NodeRedisLike, Emitter {
  readonly isReady?: boolean;
  readonly masters?: unknown;
  readonly slots?: readonly ({ readonly master?: { readonly address?: string } } | undefined)[];
}

/** RESP's type byte of bulk strings, `$`. */
const BULK_STRING = 36;

function nodeRedis(client: NodeRedis, server: Server): Link {
  const bytes = client.withTypeMapping?.({ [BULK_STRING]: Buffer }) as NodeRedisLike | undefined;
  const sender = bytes ?? client;
  const starting = client.isOpen && client.isReady === false;
  return {
    ...server,
    form: bytes === undefined ? "text" : "bytes",
    cluster: "slots" in client && "masters" in client,
    // The table is replaced when the client reads it again.
    masterOf: (slot) => client.slots?.[slot]?.master?.address,
    connecting: starting ? firstOf(client, ["ready", "reconnecting", "end"]) : undefined,
    run: (whole, script, keys, args) => {
      const options = { keys, arguments: args };
      return (whole ? sender.eval(script, options) : sender.evalSha(script, options)).catch((error: unknown) => {
        if (client.isOpen) throw error;
        throw new Error(
          `${messageOf(error)}; await client.connect() before the first call, and close the client after the last`,
          { cause: error },
        );
      });
    },
  };
}
