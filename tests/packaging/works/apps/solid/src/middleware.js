import { createMiddleware } from "@solidjs/start/middleware";
import { toResponse } from "h3";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/fetch";

const limits = defineLimits({ all: { kind: "token bucket", rate: 300, period: MINUTE } });
const limited = rateLimit(limits, { name: "all" }, (_request, _event, next) => next());

export default createMiddleware([
  (event, next) => limited(event.req, event, async () => toResponse(await next(), event)),
]);
