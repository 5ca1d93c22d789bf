/** The service's routes, on Hono. */
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { bodyLimit } from "hono/body-limit";
import { routePath } from "hono/route";
import { isStoreError } from "tidegate";
import type { Mounted } from "./console.ts";
import type { Env } from "./context.ts";
import { forwardAuth, type Proxies } from "./forward-auth.ts";
import type { Log } from "./log.ts";
import { messagesOf } from "tidegate/cli";
import type { Metrics } from "./metrics.ts";
import { openapi } from "./openapi.ts";
import type { PolicyFile } from "./policies.ts";
import { mistaken, problem, RequestError } from "./problem.ts";
import { answerOf, type Route, ROUTES } from "./routes.ts";

/** What the routes need. */
export interface Service {
  readonly file: PolicyFile;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly version: string;
  /** Bytes. */
  readonly bodyLimit: number;
  /** The token of the administrator; without one these routes do not exist. */
  readonly adminToken: string | undefined;
  /** The console; without one its route does not exist. */
  readonly console: Mounted | undefined;
  /** The proxies of forward auth; without them its routes do not exist. */
  readonly proxies: Proxies | undefined;
  readonly logRequests: boolean;
  /** Whether the service accepts requests, and is not shutting down. */
  accepting(): boolean;
}

const PROBE = { config: { kind: "token bucket", rate: 1, period: 1000 } } as const;

/** The body of a request. Throws a {@link RequestError} where it is not JSON. */
async function bodyOf(c: Context): Promise<unknown> {
  const text = await c.req.text();
  try {
    return JSON.parse(text);
  } catch (error) {
    const rule = `JSON (${(error as Error).message})`;
    throw new RequestError({ field: "body", rule, value: text, remedy: "Send a JSON object." });
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

function handler(route: Route, file: PolicyFile): (c: Context<Env>) => Promise<Response> {
  return async (c) => {
    // A page in a browser can send JSON elsewhere only where the server allows it, other types without asking.
    if (route.method === "post" && !/^application\/json\s*(;|$)/i.test(c.req.header("content-type") ?? "")) {
      return problem(c, 415, "The body must be application/json: send `Content-Type: application/json`.");
    }
    const { body, headers } = await answerOf(route, route.method === "post" ? await bodyOf(c) : queryOf(c), file);
    // Not by `c.body`, which makes an object of `Headers` of them: this is the server's own fast path.
    return new Response(JSON.stringify(body), { headers: { "Content-Type": "application/json", ...headers } });
  };
}

const measured =
  ({ metrics, log, logRequests, accepting }: Service): MiddlewareHandler<Env> =>
  async (c, next) => {
    const start = performance.now();
    await next();
    const { status } = c.res;
    // A connection that is kept would delay the end.
    if (!accepting()) c.header("Connection", "close");
    metrics.answered(routePath(c, -1), status);
    if (!logRequests) return;
    const { method, path } = c.req;
    log.info("request", { method, path, status, ms: Math.round((performance.now() - start) * 1000) / 1000 });
  };

/** Whether the store answers, or why not. */
async function storeProblem({ file }: Service): Promise<string | undefined> {
  try {
    await file.policies.limiter.getValue("tidegate-serve.ready", PROBE);
    return undefined;
  } catch (error) {
    return messagesOf(error);
  }
}

/** Makes the application. */
export function appOf(service: Service): Hono<Env> {
  const { file, metrics, log, version, adminToken, proxies } = service;
  const app = new Hono<Env>();
  app.use(measured(service));
  app.onError((error, c) => {
    if (error instanceof RequestError) return mistaken(c, error.mistake);
    if (isStoreError(error)) return problem(c, 503, `The store failed: ${messagesOf(error)}.`);
    log.error("request failed", { path: c.req.path, cause: messagesOf(error), stack: error.stack });
    return problem(c, 500, "This is a defect of tidegate-serve, or of its environment; the log has the cause.");
  });
  app.notFound((c) =>
    problem(c, 404, `There is no ${c.req.method} ${c.req.path}; GET /v1/openapi.json lists the API.`),
  );

  app.get("/healthz", (c) => c.json({ ok: true }));
  app.get("/readyz", async (c) => {
    if (!service.accepting()) return problem(c, 503, "The service is shutting down.");
    const failed = await storeProblem(service);
    return failed === undefined ? c.json({ ok: true }) : problem(c, 503, `The store failed: ${failed}.`);
  });
  app.get("/metrics", async (c) => c.body(await metrics.text(), 200, { "Content-Type": metrics.contentType }));
  const document = openapi(version, adminToken !== undefined);
  app.get("/v1/openapi.json", (c) => c.json(document));

  const limited = limitedTo(service.bodyLimit);
  const refused = (c: Context) =>
    problem(c, 401, "Send `Authorization: Bearer <token>` with the administrator's token.");
  for (const route of ROUTES) {
    if (route.admin && adminToken === undefined) continue;
    const guards = [
      ...(route.admin && adminToken !== undefined ? [guard(adminToken, refused)] : []),
      ...(route.method === "post" ? [limited] : []),
    ];
    app.on(route.method, [route.path], ...(guards as [MiddlewareHandler]), handler(route, file));
  }
  const { console: mounted } = service;
  if (mounted !== undefined) app.all("/console", limited, (c) => mounted.fetch(c.req.raw));
  if (proxies !== undefined) forwardAuth(app, file, proxies);
  return app;
}

/** Refuses larger bodies. */
function limitedTo(maxSize: number): MiddlewareHandler {
  const onError = (c: Context) => problem(c, 413, `The body must be at most ${maxSize} bytes (--body-limit).`);
  const counting = bodyLimit({ maxSize, onError });
  return async (c, next) => {
    const length = c.req.header("content-length");
    // Node.js reads no more than the length that it states; counting costs as much as the rest of a decision.
    if (length === undefined || c.req.header("transfer-encoding") !== undefined) return counting(c, next);
    return Number(length) <= maxSize ? next() : onError(c);
  };
}

/** Requires the token; the answer does not reveal which part of it was wrong. */
function guard(token: string, refused: (c: Context) => Response): MiddlewareHandler {
  const check = bearerAuth({ token });
  return async (c, next) => {
    let passed = false;
    try {
      return await check(c, async () => {
        passed = true;
        await next();
      });
    } catch (error) {
      if (passed) throw error;
      const response = refused(c);
      response.headers.set("WWW-Authenticate", "Bearer");
      return response;
    }
  };
}
