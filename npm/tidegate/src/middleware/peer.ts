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
  /** @hono/node-server: the request of `node:http`. */
  incoming?: { socket?: { remoteAddress?: unknown } | undefined } | undefined;
}

/** The peer's address, which Deno, Bun and @hono/node-server pass beside the request; `undefined` elsewhere (Workers). */
export function peerAddress(request: Request, beside: unknown): string | undefined {
  if (typeof beside !== "object" || beside === null) return undefined;
  const { remoteAddr, requestIP, server, incoming } = beside as Beside;
  if (remoteAddr !== undefined) return addressIn(remoteAddr);
  if (typeof requestIP === "function") return addressIn(requestIP.call(beside, request));
  if (typeof server?.requestIP === "function") return addressIn(server.requestIP(request));
  const remote = incoming?.socket?.remoteAddress;
  return typeof remote === "string" ? remote : undefined;
}
