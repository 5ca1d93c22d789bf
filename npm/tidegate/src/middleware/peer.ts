import type { Incoming } from "./client.ts";

const addressIn = (found: unknown): string | undefined => {
  if (typeof found !== "object" || found === null) return undefined;
  const { address, hostname } = found as { address?: unknown; hostname?: unknown };
  return typeof address === "string" ? address : typeof hostname === "string" ? hostname : undefined;
};

interface Beside {
  /** Deno: the connection's information. */
  remoteAddr?: unknown;
  /** Bun: the server. */
  requestIP?: ((request: Request) => unknown) | undefined;
  server?: { requestIP?: ((request: Request) => unknown) | undefined } | undefined;
  /** SvelteKit: the event. */
  getClientAddress?: (() => unknown) | undefined;
  /** @hono/node-server: the request of `node:http`. */
  incoming?: { socket?: Incoming["socket"] } | undefined;
}

/** The peer, which Deno, Bun, @hono/node-server and SvelteKit pass beside the request; nothing elsewhere (Workers). */
export function peerOf(request: Request, beside: unknown): Pick<Incoming, "address" | "socket"> {
  if (typeof beside !== "object" || beside === null) return {};
  const { remoteAddr, requestIP, server, getClientAddress, incoming } = beside as Beside;
  if (remoteAddr !== undefined) return { address: addressIn(remoteAddr) };
  if (typeof requestIP === "function") return { address: addressIn(requestIP.call(beside, request)) };
  if (typeof server?.requestIP === "function") return { address: addressIn(server.requestIP(request)) };
  if (typeof getClientAddress === "function") return { address: String(getClientAddress.call(beside)) };
  // The socket itself: its address is absent where the client has left, or on a Unix socket.
  return { socket: incoming?.socket };
}
