/** The client's address, from the connection or from the header of a trusted proxy. */
import { checkObject } from "../limit/checks.ts";
import { isPromise } from "../limit/realms.ts";
import { InputError } from "../limit/errors.ts";
import { type Address, type AddressOptions, isWithin, keyOf, parseAddress } from "./address.ts";
import { forwardedFor, fromTheRight, withoutPort } from "./forwarded.ts";

/** Settings of {@link clientIp}. Without any, no header is read. */
export interface ClientIpOptions extends AddressOptions {
  /**
   * The trusted proxies: how many are in front (0 to 100), counted from this server outwards; or their addresses and
   * networks (`"10.0.0.0/8"`, `"2001:db8::/32"`). With 0 no header is read. With a number that is too high, clients choose
   * their own address.
   */
  trust?: number | readonly string[] | undefined;
  /**
   * The header that those proxies set: `"x-forwarded-for"` (the default), `"forwarded"` (RFC 7239), or a platform's own
   * with one address (`"cf-connecting-ip"`, `"fly-client-ip"`, `"x-real-ip"`). A platform's header is trusted from every
   * peer unless `trust` lists networks: use it only if clients cannot reach the server around the platform.
   */
  header?: string | undefined;
}

/** What {@link clientIp} reads: a request of `node:http` or Express; or the peer's address and headers of any host. */
export interface ClientRequest {
  readonly socket?: { readonly remoteAddress?: string | undefined } | null | undefined;
  /** The peer's address, if there is no socket. */
  readonly address?: string | undefined;
  readonly headers?: { get(name: string): string | null } | object | undefined;
}

type Networks = readonly { readonly address: Address; readonly bits: number }[];

function networksOf(trust: readonly string[]): Networks {
  return trust.map((text) => {
    const [, written, bits] = (typeof text === "string" && /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text)) || [];
    const address = written === undefined ? undefined : parseAddress(written);
    const most = written?.includes(":") ? 128 : 32;
    // `::ffff:10.0.0.0/104` is 10.0.0.0/8: the address that it embeds begins there.
    const before = address === undefined ? 0 : most - address.length * 8;
    const length = Number(bits ?? most);
    if (address === undefined || length < before || length > most) {
      const rule = 'addresses and networks such as "10.0.0.0/8", where an IPv4 one within IPv6 has 96 to 128 bits';
      throw new InputError("trust", rule, text);
    }
    return { address, bits: length - before };
  });
}

const within = (client: Address, networks: Networks): boolean =>
  networks.some(({ address, bits }) => isWithin(client, address, bits));

/** By list, its networks and the texts that they were read from: the list may change. */
const read = new WeakMap<readonly string[], { readonly texts: readonly string[]; readonly networks: Networks }>();

function networksIn(list: readonly string[]): Networks {
  const before = read.get(list);
  if (before?.texts.length === list.length && before.texts.every((text, i) => text === list[i])) return before.networks;
  const networks = networksOf(list);
  read.set(list, { texts: [...list], networks });
  return networks;
}

/** How many proxies are trusted, or their networks. */
function trustOf(trust: ClientIpOptions["trust"]): { hops: number; networks: Networks | undefined } {
  if (trust === undefined) return { hops: 0, networks: undefined };
  if (Array.isArray(trust)) return { hops: Infinity, networks: networksIn(trust) };
  if (typeof trust !== "number" || !Number.isInteger(trust) || trust < 0 || trust > 100) {
    const rule = "a number of proxies, an integer from 0 to 100, or an array of their networks";
    throw new InputError("trust", rule, trust);
  }
  return { hops: trust, networks: undefined };
}

/** A header's text, by its name in lower case. Hosts join a repeated one by commas. */
export function headerIn(headers: ClientRequest["headers"], name: string): string | undefined {
  if (headers === undefined || headers === null) return undefined;
  // A promise has no headers: all clients would have one key.
  if (typeof headers !== "object" || isPromise(headers))
    throw new InputError("headers", "a Headers, or an object of headers", headers);
  if ("get" in headers && typeof headers.get === "function") return headers.get(name) ?? undefined;
  const value: unknown = Object.hasOwn(headers, name) ? (headers as Record<string, unknown>)[name] : undefined;
  return Array.isArray(value) ? value.join(",") : typeof value === "string" ? value : undefined;
}

/** The same; if there is none, of the name in other letters, as in an event of API Gateway v1. Of several such names none is read. */
function anyCase(headers: ClientRequest["headers"], name: string): string {
  const found = headerIn(headers, name);
  if (found !== undefined) return found;
  const [own, ...others] = Object.keys(Object(headers)).filter((key) => key.toLowerCase() === name);
  return (own !== undefined && others.length === 0 && headerIn(headers, own)) || "";
}

/** The key of all requests without an address; no address has it. */
const UNKNOWN = "unknown";

/**
 * The key of the client that sent a request, for `limit(name, { key })`: its address as {@link addressKey} writes it.
 *
 * Without options no header is read. With `trust`, addresses are read from the right, where the trusted proxies append
 * them; what a client writes at the left never changes its key. Reading stops at an entry that is not an address: the proxy
 * that passed it on is the client then. A request without any address (a Unix socket) has the key `"unknown"`.
 *
 * ```ts
 * limits.limit("api", { key: clientIp(request, { trust: 1 }) }); // one proxy in front
 * ```
 *
 * A framework's own setting, such as `trust proxy` of Express, is not read: `clientIp({ address: request.ip })` is the key of the
 * address that it found.
 *
 * Throws an `InputError` if an option is wrong, never because of a request's contents. Source: RFC 7239, section 5.2.
 */
export function clientIp(request: ClientRequest, options: ClientIpOptions = {}): string {
  if ((typeof request !== "object" && typeof request !== "function") || request === null) {
    throw new InputError("request", "a request, or an object with address and headers", request);
  }
  checkObject("options", options, "an object, such as { trust: 1 }");
  const { hops, networks } = trustOf(options.trust);
  const header = headerOf(options);
  const peer = peerOf(request);
  const list = header === "x-forwarded-for" || header === "forwarded";
  let client = peer;
  if (!list) {
    if (options.trust !== 0 && (networks === undefined || (peer !== undefined && within(peer, networks)))) {
      client = parseAddress(withoutPort(anyCase(request.headers, header).trim())) ?? peer;
    }
  } else if (hops > 0) {
    const text = anyCase(request.headers, header);
    const entries = header === "forwarded" ? forwardedFor(text) : fromTheRight(text);
    let hop = 0;
    for (const entry of entries) {
      if (hop++ >= hops || (networks !== undefined && (client === undefined || !within(client, networks)))) break;
      const address = entry === undefined ? undefined : parseAddress(withoutPort(entry));
      if (address === undefined) break;
      client = address;
    }
  }
  const key = keyOf(client ?? NO_ADDRESS, options); // checks the options in any case
  return client === undefined ? UNKNOWN : key;
}

function peerOf({ socket, address }: ClientRequest): Address | undefined {
  const found: unknown = socket?.remoteAddress ?? address ?? "";
  if (typeof found !== "string") throw new InputError("address", "a string, or absent", found);
  return parseAddress(withoutPort(found));
}

const NO_ADDRESS: Address = [0, 0, 0, 0];

function headerOf({ header, trust }: ClientIpOptions): string {
  if (header === undefined) return "x-forwarded-for";
  if (typeof header !== "string" || !/^[\w-]+$/.test(header)) {
    throw new InputError("header", "a header's name, such as x-forwarded-for", header);
  }
  const name = header.toLowerCase();
  if (trust === undefined && (name === "x-forwarded-for" || name === "forwarded")) {
    throw new InputError("trust", `a number of proxies or their networks if ${name} is read`, trust);
  }
  return name;
}
