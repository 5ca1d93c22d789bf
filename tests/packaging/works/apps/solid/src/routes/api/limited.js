import { defineLimits, MINUTE } from "tidegate";
import { decisionOf, rateLimit } from "tidegate/fetch";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const limited = rateLimit(limits, { name: "send" }, (request) => Response.json(decisionOf(request)?.remaining));

// By the address of `event.nativeEvent`, srvx's request.
export const GET = (event) => limited(event.request, event);
