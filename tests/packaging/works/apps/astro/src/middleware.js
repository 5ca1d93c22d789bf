import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/fetch";

const limits = defineLimits({ all: { kind: "token bucket", rate: 300, period: MINUTE } });
const limited = rateLimit(limits, { name: "all" }, (_request, _context, next) => next());

export const onRequest = (context, next) => (context.isPrerendered ? next() : limited(context.request, context, next));
