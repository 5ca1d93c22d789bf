// A Worker with a coarse daily quota in Workers KV, which is eventually consistent, and says so.
// In this folder: npx wrangler dev
import { env } from "cloudflare:workers";
import { DAY, defineLimits, SECOND } from "tidegate";
import { rateLimit } from "tidegate/fetch";
import { workersKv } from "tidegate/workers-kv";

const limits = defineLimits(
  { quota: { kind: "fixed window", rate: 1000, period: DAY } },
  { store: workersKv(env.QUOTAS), timeout: 2 * SECOND },
);

export default {
  fetch: rateLimit(limits, { name: "quota", client: { header: "cf-connecting-ip" } }, () => new Response("hello\n")),
};
