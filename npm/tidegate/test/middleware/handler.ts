import type { AddressInfo, Server } from "node:net";
import type { IncomingMessage, ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import type { Serving } from "./suite.ts";

/** What a URL orders the handlers of the tests to do: see `Serve`. It throws where the handler is to throw. */
export function orders(url: string): { status: number; hangs: boolean } {
  const query = new URLSearchParams(url.split("?")[1]);
  if (query.has("throw")) throw new Error("the handler fails");
  return { status: Number(query.get("status") ?? 200), hangs: query.has("hang") };
}

/** The same as a listener of `node:http`; the framework answers a thrown error. */
export function handle(request: IncomingMessage & { rateLimit?: unknown }, response: ServerResponse): void {
  const { status, hangs } = orders(request.url ?? "");
  if (hangs) return;
  response.statusCode = status;
  response.end(JSON.stringify(request.rateLimit ?? null));
}

export const headerOf = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name];
  return typeof value === "string" ? value : undefined;
};

/** Listens on a free port of the loopback until the test ends. */
export async function listen(server: Server): Promise<Serving> {
  const serving = await open(server);
  onTestFinished(async () => void (await serving.close()));
  return serving;
}

/** Listens on a free port of the loopback. */
export async function open(server: Server): Promise<Serving> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((done) => {
      (server as Server & { closeAllConnections?(): void }).closeAllConnections?.();
      server.close(() => done());
    });
  return { url: `http://127.0.0.1:${port}`, server, close };
}
