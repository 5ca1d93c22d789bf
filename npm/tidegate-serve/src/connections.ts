/** The connections of a server, which neither `node:http` nor grpc-js lists, and its end. */
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

/**
 * The open connections to a port, of those that are made after this call. An address has at most `most` of them at a time;
 * further ones are closed.
 */
export function connectionsTo(port: number, most = Infinity): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  const counts = new Map<string | undefined, number>();
  subscribe("net.server.socket", (message) => {
    const { socket } = message as { readonly socket: Socket };
    if (socket.localPort !== port) return;
    open.add(socket);
    const { remoteAddress } = socket;
    const count = (counts.get(remoteAddress) ?? 0) + 1;
    counts.set(remoteAddress, count);
    socket.once("close", () => {
      open.delete(socket);
      const left = (counts.get(remoteAddress) ?? 0) - 1;
      if (left > 0) counts.set(remoteAddress, left);
      else counts.delete(remoteAddress);
    });
    // Its server gets it first, and expects an open one.
    if (count > most) setImmediate(() => socket.destroy());
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
