import { createMiddleware, createServerFn } from "@tanstack/react-start";
import { getRequestIP, setResponseHeaders, setResponseStatus } from "@tanstack/react-start/server";
import { defineLimits, MINUTE } from "tidegate";
import { clientIp, problem, rateLimitHeaders, statusOf } from "tidegate/http";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const limited = createMiddleware({ type: "function" }).server(async ({ next }) => {
  const d = await limits.limit("send", { key: clientIp({ address: getRequestIP() }) });
  setResponseHeaders(new Headers(rateLimitHeaders(d)));
  if (d.ok) return next();
  setResponseStatus(statusOf(d));
  throw new Error(problem(d)?.detail);
});

export const send = createServerFn()
  .middleware([limited])
  .handler(() => "sent");
