/** The service's routes, on Hono. */
import { type Context, Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { bodyLimit } from "hono/body-limit";
import { isStoreError } from "tidegate";
import { behind, type Env, type Handler } from "./context.ts";
import { forwardAuth, routed } from "./forward-auth.ts";
import { type Log, logFailure } from "./log.ts";
import { messagesOf } from "tidegate/cli";
import type { Metrics } from "./metrics.ts";
import { openapi } from "./openapi.ts";
import type { PolicyFile } from "./policies.ts";
import { mistaken, problem, RequestError } from "./problem.ts";
import { answerOf, type Route, ROUTES } from "./routes.ts";
import type { Settings } from "./settings.ts";

/** What the routes need. */
interface Service extends Pick<Settings, "version" | "bodyLimit" | "adminToken" | "proxies" | "logRequests"> {
  readonly file: PolicyFile;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Whether the service accepts requests, and is not shutting down. */
  accepting(): boolean;
}

/** It grants 1,000 probes a second, so that none is denied. */
const PROBE = { config: { kind: "token bucket", rate: 1000, period: 1000 } } as const;

/** Throws a {@link RequestError} if the connection ended within the body. It is not a defect, which the log would report with its stack. */
function incomplete(error: NodeJS.ErrnoException): never {
  if (error.code !== "ECONNRESET") throw error;
  throw new RequestError({ field: "body", rule: "complete", remedy: "Send all of it." });
}

/** With its default, U+FFFD in place of what is not UTF-8, different keys would share one limit. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** The body of a request. Throws a {@link RequestError} if it is not complete, or not JSON in UTF-8. */
async function bodyOf(c: Context): Promise<unknown> {
  const bytes = await c.req.arrayBuffer().catch(incomplete);
  try {
    return JSON.parse(UTF_8.decode(bytes));
  } catch (error) {
    const rule = `JSON (${(error as Error).message})`;
    const value = new TextDecoder().decode(bytes);
    throw new RequestError({ field: "body", rule, value, remedy: "Send a JSON object." });
  }
}

/** The fields of a query, of which only `key` may be repeated. */
function queryOf(c: Context): object {
  const { key, ...rest } = c.req.queries();
  const single = Object.fromEntries(
    Object.entries(rest).map(([name, values]) => [name, values.length > 1 ? values : values[0]]),
  );
  return key === undefined ? single : { ...single, key };
}

function handler(route: Route, file: PolicyFile): Handler {
  return async (c) => {
    // A page in a browser can send JSON elsewhere only if the server allows it, other types without asking.
    if (route.method === "post") {
      if (!/^application\/json\s*(;|$)/i.test(c.req.header("content-type") ?? "")) {
        return problem(c, 415, "The body must be application/json: send `Content-Type: application/json`.");
      }
      const encoding = c.req.header("content-encoding") ?? "identity";
      if (!/^identity$/i.test(encoding)) {
        const detail = `The body must not be compressed (Content-Encoding: ${encoding}): send the JSON itself.`;
        return problem(c, 415, detail);
      }
    }
    const { body, headers } = await answerOf(route, route.method === "post" ? await bodyOf(c) : queryOf(c), file);
    // Not by `c.body`, which makes an object of `Headers` of them: this is the server's own fast path.
    return new Response(JSON.stringify(body), {
      headers: Object.assign({ "Content-Type": "application/json" }, headers),
    });
  };
}

function failed(error: unknown, c: Context, log: Log): Response {
  if (error instanceof RequestError) return mistaken(c, error);
  if (isStoreError(error)) return problem(c, 503, `The store failed: ${messagesOf(error)}.`);
  logFailure(log, c.req.path, error);
  return problem(c, 500, "This is a defect of tidegate-serve, or of its environment; the log has the cause.");
}

/**
 * The handler with errors answered, and responses counted and logged. Not a middleware: Hono composes the handlers of a route
 * anew for each request if it has several, which takes longer than a decision.
 */
function measured({ metrics, log, logRequests, accepting }: Service, route: string, handle: Handler): Handler {
  return async (c) => {
    const start = performance.now();
    let response: Response;
    try {
      response = await handle(c);
    } catch (error) {
      response = failed(error, c, log);
    }
    const { status } = response;
    // A connection that is kept would delay the end.
    if (!accepting()) response.headers.set("Connection", "close");
    metrics.answered(route, status);
    if (logRequests) {
      const { method, path } = c.req;
      log.info("request", { method, path, status, ms: Math.round((performance.now() - start) * 1000) / 1000 });
    }
    return response;
  };
}

/** Whether the store takes a token, or why not: one that can only be read, such as a replica, has failed. */
async function storeProblem({ file }: Service): Promise<string | undefined> {
  const { cause } = await file.policies.limiter.limit("tidegate-serve.ready", PROBE);
  return cause === undefined ? undefined : messagesOf(cause);
}

export function appOf(service: Service): Hono<Env> {
  const { file, metrics, version, adminToken, proxies } = service;
  const { console: mounted } = file;
  const app = new Hono<Env>({ getPath: routed });
  /** The methods of a path that does not take all. */
  const methods = new Map<string, string>();
  const on = (method: "get" | "post" | "all", path: string, handle: Handler): void => {
    if (method !== "all") methods.set(path, method === "get" ? "GET, HEAD" : "POST");
    app[method](path, measured(service, path, handle));
  };
  app.notFound(
    measured(service, "/*", (c) => {
      const { method, path } = c.req;
      const allow = methods.get(path);
      const list = "GET /v1/openapi.json lists the API";
      if (allow === undefined) return problem(c, 404, `There is no ${method} ${path}; ${list}.`);
      const response = problem(c, 405, `${path} takes ${allow}, not ${method}; ${list}.`);
      response.headers.set("Allow", allow);
      return response;
    }),
  );

  on("get", "/healthz", (c) => c.json({ ok: true }));
  on("get", "/readyz", async (c) => {
    if (!service.accepting()) return problem(c, 503, "The service is shutting down.");
    const cause = await storeProblem(service);
    return cause === undefined ? c.json({ ok: true }) : problem(c, 503, `The store failed: ${cause}.`);
  });
  on("get", "/metrics", async (c) => c.body(await metrics.text(), 200, { "Content-Type": metrics.contentType }));
  const document = openapi(version, adminToken !== undefined);
  on("get", "/v1/openapi.json", (c) => c.json(document));

  for (const route of ROUTES) {
    const { method, path, admin } = route;
    const answer = method === "post" ? limitedTo(service.bodyLimit, handler(route, file)) : handler(route, file);
    if (!admin) on(method, path, answer);
    else if (adminToken !== undefined) on(method, path, guarded(adminToken, answer));
  }
  if (mounted !== undefined) {
    const page = limitedTo(service.bodyLimit, (c) => mounted.fetch(c.req.raw));
    on("all", "/console", page);
  }
  if (proxies !== undefined) forwardAuth((path, handle) => on("all", path, handle), file, proxies);
  return app;
}

function limitedTo(maxSize: number, handle: Handler): Handler {
  const onError = (c: Context) => problem(c, 413, `The body must be at most ${maxSize} bytes (--body-limit).`);
  const counting = bodyLimit({ maxSize, onError });
  return (c) => {
    const length = c.req.header("content-length");
    // Node.js reads no more than the length that it states; counting costs as much as the rest of a decision.
    if (length !== undefined && c.req.header("transfer-encoding") === undefined) {
      return Number(length) <= maxSize ? handle(c) : onError(c);
    }
    return behind(counting, c, handle).catch(incomplete);
  };
}

/** Requires the token; the answer does not reveal which part of it was wrong. */
function guarded(token: string, handle: Handler): Handler {
  const check = bearerAuth({ token });
  return async (c) => {
    let passed = false;
    try {
      return await behind(check, c, () => {
        passed = true;
        return handle(c);
      });
    } catch (error) {
      if (passed) throw error;
      const response = problem(c, 401, "Send `Authorization: Bearer <token>` with the administrator's token.");
      response.headers.set("WWW-Authenticate", "Bearer");
      return response;
    }
  };
}
