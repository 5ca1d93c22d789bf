/** Ports for servers that tests start. */
import { createSocket } from "node:dgram";
import { createServer } from "node:net";

// Below the ephemeral ports of operating systems (Linux: from 32768, others: from 49152), so that a
// killed server can use its port again; with room for a Redis cluster's second port, which is 10,000 higher.
const FIRST = 10_240;
const COUNT = 10_000;

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });

/**
 * Reserves a port until this process ends: its UDP port of that number, which no server of a test uses, is bound. Until
 * a server listens, other processes would find the TCP port free.
 */
const reserve = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createSocket("udp4");
    socket.once("error", () => resolve(false));
    socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => {
      socket.unref();
      resolve(true);
    });
  });

/** A free loopback port that no other caller gets, in this process or another, while this process runs. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if ((await reserve(port)) && (await isFree(port)) && (await isFree(port + 10_000))) return port;
  }
}
