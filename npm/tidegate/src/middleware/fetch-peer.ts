/** The client's address as each host of fetch handlers reports it. */
import type { Incoming } from "./client-key.ts";
import type { NodeResponse } from "./node-response.ts";

const addressIn = (found: unknown): string | undefined => {
  if (typeof found !== "object" || found === null) return undefined;
  const { address, hostname } = found as { address?: unknown; hostname?: unknown };
  return typeof address === "string" ? address : typeof hostname === "string" ? hostname : undefined;
};

/** What hosts and frameworks pass beside the request. */
interface HostContext {
  /** Deno: the connection's information. */
  remoteAddr?: unknown;
  /** Bun: the server. */
  requestIP?: ((request: object) => unknown) | undefined;
  server?: { requestIP?: ((request: object) => unknown) | undefined } | undefined;
  /** SvelteKit: the event. */
  getClientAddress?: (() => unknown) | undefined;
  /** Astro: the context, whose getter throws if the adapter has no address. */
  clientAddress?: unknown;
  /** Netlify: the context. The parameters of a route such as `/:ip` have no object `geo`. */
  ip?: unknown;
  geo?: unknown;
  /** Qwik City: the event. */
  clientConn?: { ip?: unknown } | undefined;
  /** h3 2: the event; @whatwg-node/server, as GraphQL Yoga: the request of `node:http`. */
  req?: { ip?: unknown; socket?: Incoming["socket"] } | undefined;
  /** h3 1, as in Nuxt 4: the event. */
  node?: { req?: { socket?: Incoming["socket"] } | undefined } | undefined;
  /** @hono/node-server: the request of `node:http`. */
  incoming?: { socket?: Incoming["socket"] } | undefined;
}

/** The peer, as the host or framework reports it beside the request or in it; nothing elsewhere (Workers). */
export function peerOf(
  request: { readonly url?: string | undefined; readonly ip?: unknown },
  context: unknown,
): Pick<Incoming, "address" | "socket"> {
  const found = Object(context) as HostContext;
  const { remoteAddr, requestIP, server, getClientAddress, geo, clientConn, req, node, incoming } = found;
  if (remoteAddr !== undefined) return { address: addressIn(remoteAddr) };
  if (typeof requestIP === "function") return { address: addressIn(requestIP.call(context, request)) };
  if (typeof server?.requestIP === "function") return { address: addressIn(server.requestIP(request)) };
  // These two throw if an adapter has no address: a limit with a key does not read it.
  if (typeof getClientAddress === "function") return late(() => getClientAddress.call(context));
  if ("clientAddress" in found) return late(() => found.clientAddress);
  // The request's own is of srvx: TanStack Start, Nitro 3.
  const ip = (typeof geo === "object" ? found.ip : undefined) ?? clientConn?.ip ?? req?.ip ?? request.ip;
  if (typeof ip === "string") return { address: ip };
  // The socket itself: its address is absent if the client has left, or on a Unix socket.
  return { socket: (incoming ?? node?.req ?? req)?.socket };
}

const late = (address: () => unknown): Pick<Incoming, "address"> => ({
  get address() {
    return String(address());
  },
});

/** The response of `node:http`, which @hono/node-server passes beside the request. On Workers the name may be a binding's. */
export function outgoingOf(context: unknown): NodeResponse | undefined {
  const { outgoing } = Object(context) as { outgoing?: NodeResponse | null };
  return typeof outgoing?.writableEnded === "boolean" ? outgoing : undefined;
}
