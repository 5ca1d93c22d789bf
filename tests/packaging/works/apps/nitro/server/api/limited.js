import { defineHandler } from "nitro";
import { defineLimits, MINUTE } from "tidegate";
import { decisionOf, rateLimit } from "tidegate/fetch";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const limited = rateLimit(limits, { name: "send", key: "all" }, (request) =>
  Response.json(decisionOf(request)?.remaining),
);

export default defineHandler((event) => limited(event.req, event));
