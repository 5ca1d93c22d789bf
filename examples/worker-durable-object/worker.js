// A Worker whose clients share limits in Durable Objects; hot ones are spent in the isolate.
// In this folder: npx wrangler dev
import { env } from "cloudflare:workers";
import { defineLimits, SECOND } from "tidegate";
import { durableObject } from "tidegate/durable-object";
import { rateLimit } from "tidegate/fetch";

export { TidegateObject } from "tidegate/durable-object";

// Once for the isolate, not once for a request: what is leased lives here.
const limits = defineLimits(
  { api: { kind: "token bucket", rate: 1, period: 3 * SECOND, capacity: 3 } },
  { store: durableObject(env.LIMITS, { lease: true }), timeout: 2 * SECOND },
);

export default {
  fetch: rateLimit(limits, { name: "api", client: { header: "cf-connecting-ip" } }, () => new Response("hello\n")),
};
