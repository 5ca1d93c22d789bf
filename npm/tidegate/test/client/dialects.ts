/** Header fields as real APIs document and send them, and their meaning at {@link NOW}. */
import type { ServerLimits } from "../../src/client/index.ts";

/** 2026-03-01T12:00:00Z. */
export const NOW = 1_772_366_400_000;
const DATE = "Sun, 01 Mar 2026 12:00:00 GMT";

const one = (
  limit: number | undefined,
  remaining: number,
  resetAfter: number | undefined,
  name = "default",
  unit = "requests",
) => ({ name, unit, limit, remaining, resetAfter });

export const DIALECTS: readonly { api: string; fields: Record<string, string>; reported: ServerLimits }[] = [
  {
    api: "GitHub: an epoch in seconds",
    fields: {
      "x-ratelimit-limit": "5000",
      "x-ratelimit-remaining": "4987",
      "x-ratelimit-reset": String(NOW / 1000 + 1800),
      "x-ratelimit-used": "13",
      "x-ratelimit-resource": "core",
    },
    reported: { limits: [one(5000, 4987, 1_800_000)], retryAfter: undefined },
  },
  {
    api: "GitHub, with this machine's clock an hour behind the server's",
    fields: {
      date: "Sun, 01 Mar 2026 13:00:00 GMT",
      "x-ratelimit-limit": "60",
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": String(NOW / 1000 + 3660),
    },
    reported: { limits: [one(60, 0, 60_000)], retryAfter: undefined },
  },
  {
    api: "GitHub's secondary limit: a Retry-After alone",
    fields: { date: DATE, "retry-after": "60" },
    reported: { limits: [], retryAfter: 60_000 },
  },
  {
    api: "OpenAI: two limits, with durations",
    fields: {
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-limit-tokens": "150000",
      "x-ratelimit-remaining-requests": "59",
      "x-ratelimit-remaining-tokens": "149984",
      "x-ratelimit-reset-requests": "6m0s",
      "x-ratelimit-reset-tokens": "1.5s",
    },
    reported: {
      limits: [one(60, 59, 360_000, "requests"), one(150_000, 149_984, 1500, "tokens", "tokens")],
      retryAfter: undefined,
    },
  },
  {
    api: "OpenAI, out of tokens, with a wait in ms",
    fields: {
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "820ms",
      "retry-after-ms": "820",
      "retry-after": "1",
    },
    reported: { limits: [one(undefined, 0, 820, "tokens", "tokens")], retryAfter: 820 },
  },
  {
    api: "Anthropic: dates of RFC 3339",
    fields: {
      date: DATE,
      "anthropic-ratelimit-requests-limit": "50",
      "anthropic-ratelimit-requests-remaining": "49",
      "anthropic-ratelimit-requests-reset": "2026-03-01T12:00:02Z",
      "anthropic-ratelimit-input-tokens-limit": "50000",
      "anthropic-ratelimit-input-tokens-remaining": "0",
      "anthropic-ratelimit-input-tokens-reset": "2026-03-01T12:00:30Z",
    },
    reported: {
      limits: [one(50, 49, 2000, "requests"), one(50_000, 0, 30_000, "input-tokens", "tokens")],
      retryAfter: undefined,
    },
  },
  {
    api: "Azure: a wait in ms with a prefix of its own",
    fields: { "x-ms-retry-after-ms": "820", "retry-after": "1" },
    reported: { limits: [], retryAfter: 820 },
  },
  {
    api: "Linear: the unit before the part, an epoch in ms",
    fields: {
      date: DATE,
      "x-ratelimit-requests-limit": "1500",
      "x-ratelimit-requests-remaining": "1499",
      "x-ratelimit-requests-reset": String(NOW + 3_600_000),
      "x-complexity": "12",
      "x-ratelimit-complexity-limit": "250000",
      "x-ratelimit-complexity-remaining": "0",
      "x-ratelimit-complexity-reset": String(NOW + 1_800_000),
    },
    reported: {
      limits: [one(1500, 1499, 3_600_000, "requests"), one(250_000, 0, 1_800_000, "complexity", "complexity")],
      retryAfter: undefined,
    },
  },
  {
    api: "Stripe: nothing but a reason",
    fields: { "stripe-rate-limited-reason": "global-rate", "stripe-should-retry": "true" },
    reported: { limits: [], retryAfter: undefined },
  },
  {
    api: "Cloudflare: the IETF draft, with a policy of another name",
    fields: { ratelimit: '"default";r=50;t=30', "ratelimit-policy": '"burst";q=100;w=60' },
    reported: { limits: [one(100, 50, 30_000)], retryAfter: undefined },
  },
  {
    api: "Cloudflare, denied",
    fields: { ratelimit: '"default";r=0;t=213', "ratelimit-policy": '"default";q=1200;w=300', "retry-after": "213" },
    reported: { limits: [one(1200, 0, 213_000)], retryAfter: 213_000 },
  },
  {
    api: "draft-11 with several limits, one of them of bytes",
    fields: {
      "ratelimit-policy":
        '"burst";q=100;w=60,"day";q=1000;w=86400;pk=:dHJpYWw=:,"bytes";q=65535;qu="content-bytes";w=10',
      ratelimit: '"burst";r=50;t=30, "day";r=800;t=36000;pk=:dHJpYWw=:, "bytes";r=0;t=3',
    },
    reported: {
      limits: [
        one(100, 50, 30_000, "burst"),
        one(1000, 800, 36_000_000, "day"),
        one(65_535, 0, 3000, "bytes", "content-bytes"),
      ],
      retryAfter: undefined,
    },
  },
  {
    api: "draft-7",
    fields: { ratelimit: "limit=100, remaining=1, reset=15", "ratelimit-policy": "100;w=60" },
    reported: { limits: [one(100, 1, 15_000)], retryAfter: undefined },
  },
  {
    api: "draft-6 beside X-RateLimit, which says the same",
    fields: {
      "ratelimit-limit": "10, 10;w=1, 50;w=60",
      "ratelimit-remaining": "9",
      "ratelimit-reset": "50",
      "x-ratelimit-limit": "10",
      "x-ratelimit-remaining": "9",
      "x-ratelimit-reset": String(NOW / 1000 + 50),
    },
    reported: { limits: [one(10, 9, 50_000)], retryAfter: undefined },
  },
  {
    api: "Discord: fractions, and a reset in two forms",
    fields: {
      "x-ratelimit-limit": "5",
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": "1470173023.123",
      "x-ratelimit-reset-after": "64.57",
      "x-ratelimit-bucket": "abcd1234",
    },
    reported: { limits: [one(5, 0, 64_570)], retryAfter: undefined },
  },
  {
    api: "X: X-Rate-Limit",
    fields: {
      "x-rate-limit-limit": "900",
      "x-rate-limit-remaining": "899",
      "x-rate-limit-reset": String(NOW / 1000 + 900),
    },
    reported: { limits: [one(900, 899, 900_000)], retryAfter: undefined },
  },
  {
    api: "an epoch in ms",
    fields: { "x-ratelimit-remaining": "3", "x-ratelimit-reset": String(NOW + 4000) },
    reported: { limits: [one(undefined, 3, 4000)], retryAfter: undefined },
  },
  {
    api: "a server that is down, with a date",
    fields: { date: DATE, "retry-after": "Sun, 01 Mar 2026 12:02:00 GMT" },
    reported: { limits: [], retryAfter: 120_000 },
  },
];
