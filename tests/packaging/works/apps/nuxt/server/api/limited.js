import { defineLimits, MINUTE } from "tidegate";
import { decisionOf, rateLimit } from "tidegate/fetch";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const limited = rateLimit(limits, { name: "send" }, (request) => Response.json(decisionOf(request)?.remaining));

// By `event.node.req.socket`.
export default defineEventHandler((event) => limited(toWebRequest(event), event));
