/** Whose limit it is if a rule has no key: the client's address. */
import { addressKey } from "../http/address.ts";
import { type ClientIpOptions, type ClientRequest, clientIp, headerIn } from "../http/client-ip.ts";
import { fromTheRight, withoutPort } from "../http/forwarded.ts";
import { checkObject } from "../limit/checks.ts";
import { InputError } from "../limit/errors.ts";

/** What is read of a request by default: its peer, its headers, its URL. */
export interface Incoming extends ClientRequest {
  readonly url?: string | undefined;
  /** The client's address, if the application configured the framework to trust proxies. */
  readonly trusted?: string | undefined;
  /** The framework trusts every proxy: `trusted` is the first entry of `X-Forwarded-For`, which a client may write. */
  readonly trustsAll?: boolean | undefined;
}

const REMEDY =
  'give a `key`, or state where the address is: client: { header: "cf-connecting-ip" }, or { trust: 1 } behind one proxy';

/** Whether a header decides. */
const reads = ({ trust, header }: ClientIpOptions = {}): boolean =>
  trust === undefined ? header !== undefined : trust !== 0;

/** Returns the function that finds a request's client: its address by default. `setting` is the framework's own. */
export function clientKey(
  options: ClientIpOptions | undefined,
  setting: string | undefined,
): (incoming: Incoming) => string {
  if (options !== undefined) checkObject("client", options, "an object, such as { trust: 1 }");
  clientIp({ address: "192.0.2.1" }, options); // throws for a wrong option now, not at the first request
  const addressed = (incoming: Incoming): string => addressOf(incoming, options);
  if (options?.trust !== undefined || options?.header !== undefined) return addressed;
  // No header decides, so a connection's key is the same for all its requests.
  const cached = new WeakMap<object, string>();
  let warned = false;
  return (incoming) => {
    const { trusted, trustsAll = false } = incoming;
    const isRead = trusted !== undefined && !trustsAll;
    const forwarded = warned || isRead ? undefined : headerIn(incoming.headers, "x-forwarded-for");
    if (forwarded !== undefined && (trustsAll || !hasRead(forwarded, incoming))) {
      warned = true;
      warnOfProxy(setting, trustsAll);
    }
    // A framework keeps the port that some proxies write beside the address.
    if (trusted !== undefined) return addressKey(withoutPort(trusted), options ?? {}) ?? addressed(incoming);
    const { socket } = incoming;
    if (socket === undefined || socket === null) return addressed(incoming);
    let key = cached.get(socket);
    if (key === undefined) {
      key = addressed(incoming);
      cached.set(socket, key);
    }
    return key;
  };
}

/** The address of a client whose limit others share, so that their waits differ; the same for those that have none. */
export function sharerOf(incoming: Incoming, options: ClientIpOptions = {}): string {
  const { trusted: address } = incoming;
  try {
    return clientIp(address === undefined || reads(options) ? incoming : { address }, options);
  } catch {
    // An adapter that has no address throws when it is read.
    return "";
  }
}

/** The key of the client's address; throws if neither the host nor the request has it. */
function addressOf(incoming: Incoming, options: ClientIpOptions | undefined): string {
  if (incoming.headers === undefined && reads(options)) {
    const rule = "given if there are no headers to read the client's address from, as in a message on ws";
    throw new InputError("key", rule, undefined);
  }
  const key = clientIp(incoming, options);
  // A request over a Unix socket has the key "unknown". Without a socket the host does not report addresses, and all
  // clients would share one bucket.
  if (key === "unknown" && incoming.socket === undefined) {
    const absent = `, nor the request's ${options?.header ?? "x-forwarded-for"}: send it in tests, or give a \`key\``;
    const rule = `given if the host does not report the client's address${reads(options) ? absent : `: ${REMEDY}`}`;
    throw new InputError("key", rule, undefined);
  }
  return key;
}

/**
 * Whether the host has read the header: Vercel's adapters report an address that is in it, and those of AWS Lambda the first
 * one as the peer's. A proxy's own address may be in it, too, but behind its client's.
 */
function hasRead(forwarded: string, { address, socket }: Incoming): boolean {
  if (address === undefined) {
    const [first = ""] = forwarded.split(",", 1);
    return withoutPort(first.trim()) === socket?.remoteAddress;
  }
  for (const entry of fromTheRight(forwarded)) if (withoutPort(entry) === address) return true;
  return false;
}

function warnOfProxy(setting: string | undefined, trustsAll: boolean): void {
  const own = setting === undefined ? "" : `${setting}, or `;
  const found = trustsAll
    ? "every proxy is trusted, so a client that writes X-Forwarded-For chooses its address, and its limit"
    : "a request has X-Forwarded-For, which is not read. If there is a proxy in front, all its clients share one limit";
  console.warn(`tidegate: ${found}: set ${own}client: { trust: 1 } for one proxy, or give a key.`);
}
