/** ms in the units in which servers write durations: `6m0s`, `1h30m`, `820ms`. */
const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
/** Sticky: it reads what `DURATION` matched, part after part. */
const PART = /(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)/gy;
const DURATION = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+$/;
const NUMBER = /^\d+(?:\.\d+)?$/;
/** A number from here on is no wait (of 31 years) but an epoch, in seconds; and from here on in ms. */
const EPOCH_SECONDS = 1e9;
const EPOCH_MS = 1e11;

/**
 * A reset as servers write it, as ms from now: seconds, a duration, a date, or an epoch in seconds or ms. Dates and epochs
 * are on the server's clock, `serverNow`. `undefined` where it is none of these.
 */
export function resetAfter(text: string | null, serverNow: number): number | undefined {
  const trimmed = text?.trim() ?? "";
  if (NUMBER.test(trimmed)) {
    const number = Number(trimmed);
    if (number < EPOCH_SECONDS) return Math.ceil(number * 1000 - 1e-6);
    return Math.max(0, (number < EPOCH_MS ? number * 1000 : number) - serverNow);
  }
  if (DURATION.test(trimmed)) {
    let ms = 0;
    for (const [, amount, unit] of trimmed.matchAll(PART)) ms += Number(amount) * (UNITS[unit as string] as number);
    return Math.ceil(ms - 1e-6);
  }
  const at = dateOf(trimmed);
  return at === undefined ? undefined : Math.max(0, at - serverNow);
}

/** `Retry-After`: whole seconds or a date; as ms from now. A fraction is no delay of RFC 9110, but is written. */
export function retryAfter(text: string | null, serverNow: number): number | undefined {
  const trimmed = text?.trim() ?? "";
  if (NUMBER.test(trimmed)) return Math.ceil(Number(trimmed) * 1000 - 1e-6);
  const at = dateOf(trimmed);
  return at === undefined ? undefined : Math.max(0, at - serverNow);
}

/** An HTTP date or one of RFC 3339. Nothing else: `Date.parse` takes much for a date. */
export function dateOf(text: string | null): number | undefined {
  if (text === null || !/^([A-Z][a-z]{2,8}, ?\d|\d{4}-\d\d-\d\dT)/.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}
