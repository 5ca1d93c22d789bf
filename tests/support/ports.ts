/** Ports for servers that tests start. */
import { createServer } from "node:net";

// Below the ephemeral ports of operating systems (Linux: from 32768, others: from 49152), so that a
// killed server can use its port again; with room for a Redis cluster's second port, which is 10,000 higher.
const FIRST = 10_240;
const COUNT = 12_000;

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });

const given = new Set<number>();

/** A free loopback port that this process was not given before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (given.has(port) || !(await isFree(port)) || !(await isFree(port + 10_000))) continue;
    given.add(port);
    return port;
  }
}
