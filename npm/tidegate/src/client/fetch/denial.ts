import { jitter as spread } from "../../limit/jitter.ts";
import type { FieldSource, Told } from "../told/read.ts";

/** An answer, as far as it matters here. */
interface Answer {
  readonly status: number;
  readonly headers: FieldSource;
}

/** The first wait where the server does not say how long; each further one is twice as long. */
const FIRST_WAIT = 1000;

/**
 * Whether the server denied the request for its rate, or for want of capacity: 429, 503; and 403 where it says that nothing is
 * left, or when to come back (GitHub). `…-Should-Retry: false` (Stripe, OpenAI) says that a retry is of no use.
 */
export function isDenied({ status, headers }: Answer, told: Told): boolean {
  const asked = headers.get("Stripe-Should-Retry") ?? headers.get("X-Should-Retry");
  if (asked === "false") return false;
  if (status === 429 || status === 503) return true;
  return status === 403 && (told.retryAfter !== undefined || told.limits.some(({ remaining }) => remaining === 0));
}

/** ms that the server asks to wait: `Retry-After`, else until those limits have more of which nothing is left. */
export function askedFor({ limits, retryAfter }: Told): number | undefined {
  if (retryAfter !== undefined) return retryAfter;
  const empty = limits.flatMap(({ remaining, resetAfter }) => (remaining === 0 ? (resetAfter ?? []) : []));
  return empty.length === 0 ? undefined : Math.max(...empty);
}

/**
 * Epoch ms of the next attempt: never before the server said, and spread by up to `jitter` of the wait; where it did not say,
 * twice as long each time, at least half of which is waited.
 */
export function nextAttempt(told: Told, attempt: number, now: number, how: { jitter: number; key: string }): number {
  const asked = askedFor(told);
  const [wait, fraction] =
    asked === undefined ? [(FIRST_WAIT * 2 ** attempt) / (1 + how.jitter), how.jitter] : [asked, how.jitter];
  const at = { retryAt: now + wait, retryAfter: wait };
  return spread(at, { key: `${how.key} ${attempt}`, fraction }) as number;
}
