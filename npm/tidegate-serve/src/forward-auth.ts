/** Forward auth: a proxy sends a request's head here, and passes the request on if the answer is 2xx. */
import type { Context, MiddlewareHandler } from "hono";
import { getPath } from "hono/utils/url";
import { type Denial, rateLimit } from "tidegate/hono";
import { clientIp } from "tidegate/http";
import { behind, type Env, type Handler } from "./context.ts";
import type { PolicyFile } from "./policies.ts";
import { problem, RequestError } from "./problem.ts";
import type { Proxies } from "./settings.ts";

/** Traefik, Caddy, Envoy and HAProxy pass a denial's status, fields and body on. */
const FORWARD_AUTH = "/v1/forward-auth";
/** nginx's `auth_request` accepts 2xx, 401 and 403; it treats anything else as an error. */
const AUTH_REQUEST = "/v1/auth-request";

/** An address that a trusted peer may state. */
const STATED = "192.0.2.255";

/** Whether headers of this peer are read. */
const isTrusted = (address: string | undefined, { trust }: Proxies): boolean =>
  clientIp({ address, headers: { "x-forwarded-for": STATED } }, { trust }) === STATED;

/** The path behind the service's own, as it is written: a URL would resolve its dots. */
function pathBehind({ url = "" }: Env["Bindings"]["incoming"]): string | undefined {
  return url.startsWith(`${FORWARD_AUTH}/`) ? url.slice(FORWARD_AUTH.length) : undefined;
}

/** The path by which a route is found: `/v1/forward-auth/../../healthz` is no other route, which would grant without a decision. */
export function routed(request: Request, { env }: { env?: Env["Bindings"] } = {}): string {
  const path = env === undefined ? undefined : pathBehind(env.incoming);
  return path === undefined ? getPath(request) : FORWARD_AUTH + path.replace(/\?.*/s, "");
}

/**
 * The headers and the URL of the original request. Envoy sends its path behind the service's own, and its method as is. The
 * texts of a repeated header are listed: the server behind the proxy may read the first, and the others are any.
 */
function original({ req, env }: Context<Env>): { headers: NodeJS.Dict<string[]>; url: string | undefined } {
  const { headersDistinct: headers } = env.incoming;
  const path = pathBehind(env.incoming);
  if (path === undefined) return { headers, url: headers["x-forwarded-uri"]?.join(",") };
  return { headers: { ...headers, "x-forwarded-method": [req.method], "x-forwarded-uri": [path] }, url: path };
}

/** The middleware that decides the original request by the policies in force. */
function deciding(
  { limiter, policies }: PolicyFile,
  proxies: Proxies,
  denied?: (c: Context, denial: Denial) => Response,
): MiddlewareHandler<Env> {
  const { header = "x-forwarded-for" } = proxies;
  const limits = {
    select: (c: Context<Env>, incoming: object, address: (incoming: object) => string) =>
      policies.select({}, { ...incoming, ...original(c) }, (found) => {
        // If the nearest proxy states no address, all its clients would share one limit.
        if (clientIp({ headers: c.req.raw.headers }, { ...proxies, trust: 1 }) !== "unknown") return address(found);
        throw new RequestError({
          field: header,
          rule: "the client's address, set by the proxy, because a rule reads ip:address",
          value: c.req.header(header),
          remedy: "Configure the proxy to set this header.",
        });
      }),
  };
  return rateLimit(limiter, { limits, client: proxies, denied });
}

/** Adds the routes. They are for the proxies alone: any other peer is refused. */
export function forwardAuth(add: (path: string, handle: Handler) => void, file: PolicyFile, proxies: Proxies): void {
  const granted = (c: Context): Response => c.body(null, 200);
  const route = (path: string, limit: MiddlewareHandler<Env>): void => {
    add(path, (c) => {
      const { remoteAddress } = c.env.incoming.socket;
      if (isTrusted(remoteAddress, proxies)) return behind(limit, c, granted);
      return problem(c, 403, `The peer ${remoteAddress} is none of the proxies of --trust-proxy.`);
    });
  };
  for (const path of [FORWARD_AUTH, `${FORWARD_AUTH}/*`]) route(path, deciding(file, proxies));
  const forNginx = (_: Context, { status }: Denial) => new Response(null, { status: status === 503 ? 503 : 403 });
  route(AUTH_REQUEST, deciding(file, proxies, forNginx));
}
