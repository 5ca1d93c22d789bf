import { createFileRoute } from "@tanstack/react-router";
import { defineLimits, MINUTE } from "tidegate";
import { decisionOf, rateLimit } from "tidegate/fetch";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const limited = rateLimit(limits, { name: "send" }, (request) => Response.json(decisionOf(request)?.remaining));

export const Route = createFileRoute("/api/limited")({
  server: { handlers: { GET: ({ request }) => limited(request) } },
});
