/** Options of other limiters, which are refused with ours in the message. */
import { InputError } from "../limit/errors.ts";

/** Options of other limiters, and ours in their place. */
const OURS: Readonly<Record<string, string>> = {
  windowMs: "the limit's `period` in defineLimits",
  timeWindow: "the limit's `period` in defineLimits",
  duration: "the limit's `period` in defineLimits",
  ttl: "the limit's `period` in defineLimits",
  interval: "the limit's `period` in defineLimits",
  max: "the limit's `rate` in defineLimits",
  limit: "the limit's `rate` in defineLimits, and `name` here",
  points: "the limit's `rate` in defineLimits",
  rate: "the limit's `rate` in defineLimits, and `name` here",
  burst: "the limit's `capacity` in defineLimits",
  keyGenerator: "`key`",
  keyPrefix: "the limit's `name`",
  getTracker: "`key`",
  cost: "`count`",
  weight: "`count`",
  blockDuration: '`block`, such as { after: 1, for: "10m" }',
  handler: "`denied`",
  onLimitReached: "`onDecision`",
  onExceeded: "`onDecision`",
  errorResponseBuilder: "`message`",
  errorMessage: "`message`",
  allowList: "`skip`",
  skipIf: "`skip`",
  dryRun: "`shadow`",
  standardHeaders: '`headers`, such as { fields: "draft-11" }',
  legacyHeaders: '`headers`, such as { fields: "x-ratelimit" }',
  addHeaders: "`headers`",
  requestWasSuccessful: "`settle`",
  trustProxy: "`client`, such as { trust: 1 }",
  store: "`store` of defineLimits",
  redis: "`store` of defineLimits",
  passOnStoreError: '`onStoreError: "allow"` of defineLimits',
  skipOnError: '`onStoreError: "allow"` of defineLimits',
};

/** Throws if an option is that of another limiter, with ours in the message. `known` are the options that exist here. */
export function refuseForeign(options: object, known: object): void {
  for (const field of Object.keys(options)) {
    if (Object.hasOwn(known, field) || !Object.hasOwn(OURS, field)) continue;
    throw new InputError(field, `absent: use ${OURS[field]}`, (options as Record<string, unknown>)[field]);
  }
}
