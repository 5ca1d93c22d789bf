/** The service in a process: listens, reloads its policies, and shuts down. */
import { createAdaptorServer } from "@hono/node-server";
import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, Server as Listener, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { openStore, UsageError } from "tidegate/cli";
import { appOf } from "./app.ts";
import { clientsOf } from "./clients.ts";
import { connectionsTo, endsWithin } from "./connections.ts";
import type { GrpcServer } from "./grpc.ts";
import type { Log } from "./log.ts";
import { metricsOf, openTelemetry } from "./metrics.ts";
import { PolicyFile } from "./policies.ts";
import type { Settings } from "./settings.ts";

interface Service {
  readonly url: string;
  reload(): void;
  /** Stops accepting, waits for the requests under way, and closes the store. */
  close(reason: string): Promise<void>;
}

/** ms for which an idle connection is kept. */
const KEEP_ALIVE = 75_000;

/** Listens, or throws a {@link UsageError} if the address cannot be used. */
async function listen(server: Server, { host, port }: Settings): Promise<AddressInfo> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const remedy = code === "EADDRINUSE" || code === "EACCES" ? "; --port 0 takes a free port" : "";
    throw new UsageError(`--host ${host} --port ${port} cannot be used: ${message}${remedy}`);
  }
  return server.address() as AddressInfo;
}

/**
 * Accepts the connections that the system has made, for at most `within` ms: it would reset them as the listener ends.
 * Node.js accepts one in each turn.
 */
async function acceptAll(server: Server, within: number): Promise<void> {
  const until = performance.now() + within;
  let accepted = true;
  const note = (): void => {
    accepted = true;
  };
  server.on("connection", note);
  // The signal may come in a turn that has looked for connections already.
  await turn();
  while (accepted && performance.now() < until) {
    accepted = false;
    await turn();
  }
  server.off("connection", note);
}

/**
 * Ends the connections: each after its next request, the idle ones after a tenth of the time, and all after the time. An idle
 * one that ended at once would fail the request that a client has just sent on it.
 */
async function drain(server: Server, connections: ReadonlySet<Socket>, within: number): Promise<boolean> {
  const closed = once(server, "close");
  // Not by `Server.close` of node:http, which ends idle connections too. A server of Bun has no other method.
  (server instanceof Listener ? Listener.prototype : server).close.call(server);
  const idle = setInterval(() => {
    server.closeIdleConnections();
    // To Node.js a connection that has sent nothing is not idle. Browsers open some ahead.
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
  }, within / 10);
  const inTime = await endsWithin(within, closed, () => server.closeAllConnections());
  clearInterval(idle);
  return inTime;
}

async function grpcIn(settings: Settings, file: PolicyFile, log: Log): Promise<GrpcServer | undefined> {
  const { grpcPort } = settings;
  return grpcPort === undefined ? undefined : (await import("./grpc.ts")).serveGrpc(file, settings, grpcPort, log);
}

function serverOf(fetch: ReturnType<typeof appOf>["fetch"], { headerLimit }: Settings): Server {
  const serverOptions = { maxHeaderSize: headerLimit };
  // The host of requests without one, which is all that HAProxy's `option httpchk` sends.
  const server = createAdaptorServer({ fetch, serverOptions, hostname: "localhost" }) as Server;
  // By default Node.js drops headers beyond the thousandth, which may be the proxy's. Their bytes are bounded.
  server.maxHeadersCount = 0;
  // By default 5 s. A request that a client sends while the service ends an idle connection fails; proxies keep theirs for 60 s.
  server.keepAliveTimeout = KEEP_ALIVE;
  return server;
}

/**
 * Starts the service. Throws a {@link UsageError} for a wrong setting, and a `PolicyError` if the policies have mistakes;
 * then nothing is left open.
 */
export async function serve(settings: Settings, log: Log): Promise<Service> {
  const { version, host, onStoreError, timeout } = settings;
  let unconnected: unknown;
  const clients = clientsOf((error) => (unconnected = error), timeout);
  const opened = await openStore(settings.store, clients, { migrate: settings.migrate, timeout });
  let stopping = false;
  try {
    const metrics = metricsOf(opened.stats, openTelemetry(version));
    const { observer, reloaded } = metrics;
    const { adminToken } = settings;
    const isMounted = settings.console && adminToken !== undefined;
    const makeConsole = isMounted ? await (await import("./console.ts")).consoleOf(adminToken) : undefined;
    const connectionError = (): unknown => unconnected;
    const parts = { store: opened.store, onStoreError, timeout, log, makeConsole, observer, reloaded, connectionError };
    const file = new PolicyFile(settings.policies, parts);
    const accepting = (): boolean => !stopping;
    const app = appOf({ ...settings, file, metrics, log, accepting });
    // While the last connections are accepted, requests wait: a client that has its answer may open another.
    let held: Promise<void> | undefined;
    const fetch: typeof app.fetch = (...request) =>
      held === undefined ? app.fetch(...request) : held.then(() => app.fetch(...request));
    const server: Server = serverOf(fetch, settings);
    const { port } = await listen(server, settings);
    const connections = connectionsTo(port);
    const grpc = await grpcIn(settings, file, log).catch((error) => {
      server.close();
      throw error;
    });
    const unwatch = file.watch();
    /** Ends the requests under way within this many ms, then gives leased tokens back, and closes the store. */
    const stop = async (within: number): Promise<void> => {
      // A page would keep its connection for as long as it is open.
      file.console?.close();
      const draining = Promise.all([drain(server, connections, within), grpc?.close(within)]);
      unwatch();
      const drained = (await draining).every((inTime) => inTime !== false);
      await file.policies.limiter.release();
      await opened.close();
      log.info("stopped", drained ? {} : { message: `requests still ran after ${within} ms and were cut off` });
    };
    const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
    const [store, rules] = [opened.shown, file.policies.names];
    log.info("started", { url, port, grpcPort: grpc?.port, store, rules, version, pid: process.pid });
    return {
      url,
      reload: () => file.reload("SIGHUP"),
      close: async (reason) => {
        if (stopping) return;
        stopping = true;
        held = acceptAll(server, settings.shutdownTimeout / 10);
        await held;
        const stopped = stop(settings.shutdownTimeout);
        // The listener has ended before this line, which takes time.
        log.info("stopping", { reason });
        await stopped;
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}
