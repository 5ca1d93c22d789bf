/** Calls a server as two clients do: three requests from one address, then one from another. */
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";

interface Reply {
  readonly status: number | undefined;
  readonly headers: NodeJS.Dict<string | string[]>;
}

const get = (port: number, path: string, localAddress: string): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const call = request({ port, path, localAddress, host: "127.0.0.1", headers: { accept: "application/json" } });
    call.on("error", reject);
    call.on("response", (response) => {
      response.resume();
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers }));
    });
    call.end();
  });

/** The port of a server that listens. */
export const portOf = (server: Pick<Server, "address">): number => (server.address() as AddressInfo).port;

/** For a framework that does not return its server. */
export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, () => {
      const port = portOf(server);
      server.close(() => resolve(port));
    });
  });

/**
 * Prints which requests were allowed, the same at each port and path, and ends the program. Throws if a response lacks the
 * fields of its limit.
 */
export async function report(...places: readonly (readonly [port: number, path: string])[]): Promise<never> {
  const found = new Set<string>();
  for (const [port, path] of places) {
    const allowed: boolean[] = [];
    for (const address of ["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2"]) {
      const { status, headers } = await get(port, path, address);
      const isDenial = Number(headers["retry-after"]) > 0 && String(headers["content-type"]).includes("json");
      const hasFields = /^"send";r=\d/.test(String(headers["ratelimit"]));
      if (!hasFields || isDenial !== (status === 429)) throw new Error(JSON.stringify({ path, status, headers }));
      allowed.push(status === 200);
    }
    found.add(JSON.stringify(allowed));
  }
  console.log([...found].join(" "));
  process.exit();
}
