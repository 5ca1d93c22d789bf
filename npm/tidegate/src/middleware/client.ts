import { InputError } from "../limit/errors.ts";
import { type ClientIpOptions, type ClientRequest, clientIp } from "../http/client-ip.ts";

/** What is read of a request where nobody says otherwise: its peer, its headers, its URL. */
export interface Incoming extends ClientRequest {
  readonly url?: string | undefined;
  /** The URL before a router took its part off (Express). */
  readonly originalUrl?: string | undefined;
}

const REMEDY =
  'give a `key`, or say where the address is: client: { header: "cf-connecting-ip" }, or { trust: 1 } behind one proxy';

/** What tells a request's client, its own address by default. */
export function clientKey(options: ClientIpOptions | undefined): (incoming: Incoming) => string {
  clientIp({ address: "192.0.2.1" }, options); // a wrong option is told now, not at the first request
  const addressed = (incoming: Incoming): string => {
    const key = clientIp(incoming, options);
    // A Unix socket has no address, and says so; a host that merely does not tell it would put everybody in one bucket.
    if (key === "unknown" && incoming.socket === undefined) {
      throw new InputError("key", `given where the host does not tell the client's address: ${REMEDY}`, undefined);
    }
    return key;
  };
  if (options?.trust !== undefined || options?.header !== undefined) return addressed;
  // No header decides, so a connection's key is the same for all its requests.
  const known = new WeakMap<object, string>();
  let told = false;
  return (incoming) => {
    if (!told && isForwarded(incoming.headers)) {
      told = true;
      console.warn(
        "tidegate: a request came with X-Forwarded-For, which is not read. If a proxy stands in front, all its clients " +
          "share one limit: say client: { trust: 1 } for one proxy, or give a key.",
      );
    }
    const { socket } = incoming;
    if (socket === undefined || socket === null) return addressed(incoming);
    let key = known.get(socket);
    if (key === undefined) {
      key = addressed(incoming);
      known.set(socket, key);
    }
    return key;
  };
}

function isForwarded(headers: Incoming["headers"]): boolean {
  if (headers === undefined || headers === null) return false;
  if ("get" in headers && typeof headers.get === "function") return headers.get("x-forwarded-for") !== null;
  return (headers as Record<string, unknown>)["x-forwarded-for"] !== undefined;
}
