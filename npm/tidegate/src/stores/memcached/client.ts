/** The clients that can compare and swap, recognized by their shape, behind one interface. */
import { generalizedUtf8 } from "../../engine/utf8.ts";
import { sha256 } from "../../http/sha256.ts";
import { hasMethods } from "../../limit/checks.ts";
import { NotAState } from "../../limit/codec.ts";
import { isError } from "../../limit/realms.ts";
import { InputError, messageOf, showClient } from "../../limit/errors.ts";

/** The npm package `memcached`, which calls back. */
export interface CallbackMemcached {
  gets(key: string, done: (error: unknown, found: unknown) => void): void;
  add(key: string, value: string, lifetime: number, done: (error: unknown, stored: boolean) => void): void;
  cas(key: string, value: string, cas: string, lifetime: number, done: (error: unknown, stored: boolean) => void): void;
  del(key: string, done: (error: unknown, deleted: boolean) => void): void;
  /** Sent to every server. */
  version?(done: (error: unknown, versions: unknown) => void): void;
}

/** The npm package `memcache-client`, which returns promises. */
export interface PromiseMemcached {
  gets(key: string): Promise<unknown>;
  add(key: string, value: string, options: { lifetime: number }): Promise<unknown>;
  cas(key: string, value: string, options: { lifetime: number; casUniq: string }): Promise<unknown>;
  delete(key: string): Promise<unknown>;
  /** Clients without it have a `gets` that returns no version. */
  cmd(line: string): Promise<unknown>;
}

/** Any of the clients that {@link memcached} takes. */
export type MemcachedLike = CallbackMemcached | PromiseMemcached;

/** A value, and the version that a swap names. */
interface Found {
  readonly value: unknown;
  readonly version: string;
}

/** A client, as the store uses it. `exptime` is the protocol's: see {@link exptimeOf}. */
interface Connection {
  /** Connects to every server; `key` is that of no state. */
  connect(key: string): Promise<unknown>;
  find(key: string): Promise<Found | undefined>;
  /** Stores a key that is absent. `false`: it is present, or there was no room. */
  add(key: string, value: string, exptime: number): Promise<boolean>;
  /** Replaces this version. `false`: it has changed, or is gone. */
  swap(key: string, value: string, exptime: number, version: string): Promise<boolean>;
  delete(key: string): Promise<void>;
  /** The server that has a key; absent with a single server. */
  serverOf?: (key: string) => string;
}

const CLIENTS = "a Memcached client that can compare and swap: one that `memcached` or `memcache-client` makes";

/** The connection through this client; throws if the client is not supported. */
export function connectionTo(client: MemcachedLike): Connection {
  if (hasMethods(client, "gets", "add", "cas", "del")) return byCallback(client as CallbackMemcached);
  if (!hasMethods(client, "gets", "add", "cas", "delete", "cmd"))
    throw new InputError("client", CLIENTS, client, showClient(client));
  const { server } = Object((client as { options?: unknown }).options) as { server?: { servers?: unknown[] } };
  const many = server?.servers?.length ?? 1;
  // It sends each call to another of them, as if they were copies; Memcached copies nothing.
  if (many > 1) throw new InputError("client", "one of a single server", client, `one that uses any of ${many}`);
  return byPromise(client as PromiseMemcached);
}

/** A server without versions (`-C`) sends 0 for every key, and would swap unconditionally. */
function found(value: unknown, version: unknown): Found {
  if (typeof version === "string" && version !== "0") return { value, version };
  throw new Error("the server sends no version to compare; it must run without -C");
}

function byCallback(client: CallbackMemcached): Connection {
  const call = (send: (done: (error: unknown, answer: unknown) => void) => void): Promise<unknown> =>
    new Promise((resolve, reject) => {
      send((error, answer) => {
        const [first] = Array.isArray(error) ? error : [error];
        // A key that is present is reported as an error.
        if ((first as { notStored?: unknown } | undefined)?.notStored === true) resolve(false);
        else if (first) reject(isError(first) ? first : new Error(String(first)));
        else resolve(answer);
      });
    });
  return {
    connect: (key) => call((done) => (client.version ? client.version(done) : client.gets(key, done))),
    find: async (key) => {
      const answer = await call((done) => client.gets(key, done));
      if (answer === undefined) return undefined;
      if (typeof answer !== "object" || answer === null) throw new Error("the server could not answer");
      // The value is under the key that was sent, with the client's namespace; ours is never "cas".
      const { cas, ...values } = answer as Record<string, unknown>;
      return found(Object.values(values)[0], cas);
    },
    add: async (key, value, exptime) => (await call((done) => client.add(key, value, exptime, done))) === true,
    swap: async (key, value, exptime, version) =>
      (await call((done) => client.cas(key, value, version, exptime, done))) === true,
    delete: async (key) => void (await call((done) => client.del(key, done))),
    ...serversOf(client),
  };
}

/** More fields of the npm package `memcached`: its servers by key. */
interface Ring {
  readonly servers?: readonly string[];
  readonly namespace?: string;
  readonly HashRing?: { get(key: string): string };
}

function serversOf(client: CallbackMemcached): Pick<Connection, "serverOf"> {
  const { servers = [], namespace = "", HashRing: ring } = client as Ring;
  return servers.length < 2 || ring === undefined ? {} : { serverOf: (key) => ring.get(namespace + key) };
}

/** Replies of the protocol that the client reports as errors, and that are none. */
const NOT_DONE = /^(NOT_STORED|EXISTS|NOT_FOUND)\b/;

/** Another program has written a value that the client cannot decode, such as a compressed one: an error of its key alone. */
function undecoded(error: unknown): never {
  const { name } = Object(error) as { name?: unknown };
  if (name !== "SyntaxError" && name !== "AssertionError") throw error;
  throw new NotAState(`the client cannot decode the value: ${messageOf(error)}`);
}

function byPromise(client: PromiseMemcached): Connection {
  const done = async (sent: Promise<unknown>): Promise<boolean> => {
    try {
      const answer = await sent;
      return Array.isArray(answer) && (answer[0] === "STORED" || answer[0] === "DELETED");
    } catch (error) {
      if (NOT_DONE.test(messageOf(error))) return false;
      throw error;
    }
  };
  return {
    connect: (key) => client.gets(key),
    find: async (key) => {
      const answer = (await client.gets(key).catch(undecoded)) as { value?: unknown; casUniq?: unknown } | undefined;
      return answer === undefined ? undefined : found(answer.value, answer.casUniq);
    },
    add: (key, value, exptime) => done(client.add(key, value, { lifetime: exptime })),
    swap: (key, value, exptime, version) => done(client.cas(key, value, { lifetime: exptime, casUniq: version })),
    delete: async (key) => void (await done(client.delete(key))),
  };
}

/** The server takes 250; the rest is left to a namespace of the client. */
const KEY_MOST = 200;
const PLAIN = /[\w.:/@+=,~-]/;

/**
 * The key of a state: `prefix:identity`. Every character that a client or the protocol does not send unchanged is written
 * as `%` and two digits for each byte of its (generalized) UTF-8. Such are spaces, which end a key, and `$`, which one
 * client takes for a pattern. A key that is too long becomes its hash after a `#`, with which no identity begins.
 */
export function keyOf(prefix: string, id: string): string {
  const bytes = generalizedUtf8(id);
  let key = `${prefix}:`;
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    key += PLAIN.test(character) ? character : `%${byte.toString(16).padStart(2, "0")}`;
    if (key.length > KEY_MOST) return `${prefix}:#${sha256(bytes)}`;
  }
  return key;
}

const WAIT_MOST = 30 * 24 * 3600;
/** The server reads 32 bits. What is full later than that (2038) is evicted when there is no room. */
const TIME_MOST = 2 ** 31 - 1;
/** Seconds that a state is kept longer if the server's clock must reach a time. */
const SLACK_OF_TIMES = 3600;

/**
 * When the server drops a state that may be dropped in `dropIn` ms, in the protocol's seconds. 0 is never; up to 30 days is
 * a duration, and more a Unix time. `wall` is the current time, epoch ms.
 */
export function exptimeOf(dropIn: number, wall: number): number {
  const wait = Math.ceil(dropIn / 1000);
  if (wait <= WAIT_MOST) return wait;
  const time = Math.ceil(wall / 1000) + wait + SLACK_OF_TIMES;
  return time <= TIME_MOST ? time : 0;
}
