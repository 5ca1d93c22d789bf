import { createMiddleware, createStart } from "@tanstack/react-start";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/fetch";

const limits = defineLimits({ all: { kind: "token bucket", rate: 300, period: MINUTE } });
const limited = rateLimit(limits, { name: "all" }, (_request, _event, next) => next());
const limit = createMiddleware().server(({ request, next }) =>
  limited(request, {}, async () => (await next()).response),
);

export const startInstance = createStart(() => ({ requestMiddleware: [limit] }));
