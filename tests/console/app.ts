/** An app with the console, on a real server and from the built package. */
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { defineLimits, type Limiter, type MemoryStore } from "tidegate";
import { type ConsoleOptions, createConsole } from "tidegate-console";

type Name = "api" | "login" | "uploads" | "search";

export interface App {
  readonly limits: Limiter<Name, MemoryStore>;
  /** Where the page is. */
  readonly url: string;
  close(): void;
}

export async function startApp(options: ConsoleOptions = { authorize: () => true }, at = 0): Promise<App> {
  const limiter = defineLimits({
    api: { kind: "token bucket", rate: 10, period: "1s", capacity: 20 },
    // A window that does not end during a test.
    login: { kind: "fixed window", rate: 5, period: "15m", start: "first request" },
    uploads: { kind: "token bucket", rate: 100, period: "1h", capacity: 250 },
    search: { kind: "token bucket", rate: 5, period: "1s" },
  });
  const { limits, fetch } = createConsole(limiter, options);
  const app = new Hono();
  app.all("/admin/limits", (c) => fetch(c.req.raw));
  const server = serve({ fetch: app.fetch, port: at, hostname: "127.0.0.1" });
  await new Promise<void>((done) => server.once("listening", () => done()));
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.close();
    if ("closeAllConnections" in server) server.closeAllConnections();
  };
  return { limits, url: `http://127.0.0.1:${port}/admin/limits`, close };
}
