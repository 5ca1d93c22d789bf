/** The connections of a server, which neither `node:http` nor grpc-js lists, and its end. */
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

/** The open connections to a port, of those that are made after this call. */
export function connectionsTo(port: number): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  subscribe("net.server.socket", (message) => {
    const { socket } = message as { readonly socket: Socket };
    if (socket.localPort !== port) return;
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return open;
}

/** Waits for the end of a server that is closing; after this many ms it cuts off what still runs, and returns `false`. */
export async function endsWithin(ms: number, ended: Promise<unknown>, cutOff: () => void): Promise<boolean> {
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    cutOff();
  }, ms);
  await ended;
  clearTimeout(timer);
  return !late;
}
