/** Reads a server's limits from the fields of its response. */
import { InputError } from "../limit/errors.ts";
import { dictionary, type Item, list } from "./structured-fields.ts";

/** One of a server's limits, as its response reports it. */
export interface ServerLimit {
  /** The limit's name; `"default"` if it has none. */
  readonly name: string;
  /** What is counted: `"requests"`, or the server's own name (`"tokens"`, `"content-bytes"`, …). */
  readonly unit: string;
  /** The limit's size, if reported. */
  readonly limit: number | undefined;
  /** What is left: from 0. */
  readonly remaining: number;
  /** ms from the response for which no more than `remaining` may be used, if reported. */
  readonly resetAfter: number | undefined;
}

/** The limits that a response reports. */
export interface ServerLimits {
  /** Empty if it reports none. */
  readonly limits: readonly ServerLimit[];
  /** ms from the response to wait before the next request, if reported. */
  readonly retryAfter: number | undefined;
}

/** A `Headers`, or an object with its `get`, which may return `undefined` for an absent field. */
export interface FieldSource {
  get(name: string): string | null | undefined;
}

type Field = ReturnType<FieldSource["get"]>;

const count = (value: unknown): number | undefined => (typeof value === "number" && value >= 0 ? value : undefined);

const inMs = (seconds: number | undefined): number | undefined => (seconds === undefined ? undefined : seconds * 1000);

/** The first number of a field: `100` and `100, 100;w=60` are both 100. As in RFC 9651, one has at most 15 digits. */
function numberIn(text: Field): number | undefined {
  const match = /^\s*(\d{1,15}(?:\.\d+)?)\s*(?:$|[,;])/.exec(text ?? "");
  return match === null ? undefined : Number(match[1]);
}

const nameOf = ({ kind, value }: Item): string | undefined =>
  kind === "string" || kind === "token" ? String(value) : undefined;

/** draft-8 to -11: `RateLimit: "name";r=50;t=30`, with its policies by name in `RateLimit-Policy`. */
function drafts(fields: FieldSource): ServerLimit[] {
  const policies = new Map(list(fields.get("RateLimit-Policy"))?.map((policy) => [nameOf(policy), policy]));
  return (list(fields.get("RateLimit")) ?? []).flatMap((item): ServerLimit[] => {
    const name = nameOf(item);
    const remaining = count(item.parameters.get("r"));
    if (name === undefined || remaining === undefined) return [];
    // A single policy is the limit's, whatever its name.
    const policy = policies.get(name) ?? (policies.size === 1 ? [...policies.values()][0] : undefined);
    const unit = policy?.parameters.get("qu") ?? "requests";
    const limit = count(policy?.parameters.get("q"));
    return [{ name, unit: String(unit), limit, remaining, resetAfter: inMs(count(item.parameters.get("t"))) }];
  });
}

/** draft-7: `RateLimit: limit=100, remaining=50, reset=30`. */
function draft7(fields: FieldSource): ServerLimit[] {
  const members = dictionary(fields.get("RateLimit"));
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) => count(members?.get(name)?.value));
  if (remaining === undefined) return [];
  return [{ name: "default", unit: "requests", limit, remaining, resetAfter: inMs(reset) }];
}

/** Families of single fields, with a place for Limit, Remaining and Reset; and what they count. */
const FAMILIES: readonly (readonly [name: string, unit: string, field: string])[] = [
  ["default", "requests", "RateLimit-*"],
  ["default", "requests", "X-RateLimit-*"],
  ["default", "requests", "X-Rate-Limit-*"],
  ["requests", "requests", "X-RateLimit-*-Requests"],
  ["tokens", "tokens", "X-RateLimit-*-Tokens"],
  ["requests", "requests", "X-RateLimit-Requests-*"],
  ["complexity", "complexity", "X-RateLimit-Complexity-*"],
  ["requests", "requests", "Anthropic-RateLimit-Requests-*"],
  ["tokens", "tokens", "Anthropic-RateLimit-Tokens-*"],
  ["input-tokens", "tokens", "Anthropic-RateLimit-Input-Tokens-*"],
  ["output-tokens", "tokens", "Anthropic-RateLimit-Output-Tokens-*"],
];

/** draft-6, `X-RateLimit-*`, and the fields of vendors with several limits. */
function single(fields: FieldSource, serverNow: number): ServerLimit[] {
  const found = FAMILIES.flatMap(([name, unit, pattern]): ServerLimit[] => {
    const get = (part: string): Field => fields.get(pattern.replace("*", part));
    const remaining = numberIn(get("Remaining"));
    if (remaining === undefined) return [];
    const [reset] = partsOf(get("Reset-After") ?? get("Reset"));
    return [{ name, unit, limit: numberIn(get("Limit")), remaining, resetAfter: waitIn(reset, serverNow, true) }];
  });
  // The same limit in an older family is a repetition.
  return found.filter(({ name }, i) => found.findIndex((other) => other.name === name) === i);
}

/** ms in the units of durations such as `6m0s`, `1h30m`, `820ms`. */
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
/** Sticky: it reads the parts of what `DURATION` matched, in order. */
const PART = /(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)/gy;
const DURATION = /^(?:\d{1,15}(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+$/;
const NUMBER = /^\d{1,15}(?:\.\d+)?$/;
/** From 31 years on, a number of seconds is not a wait but an epoch in seconds; and from `EPOCH_MS` on, in ms. */
const EPOCH_SECONDS = 1e9;
const EPOCH_MS = 1e11;

/**
 * A wait in ms: of seconds, or of a date on the server's clock, `serverNow`. A reset may also be a duration with units, or
 * an epoch in seconds or ms. `undefined` if it is none of these.
 */
function waitIn(text: Field, serverNow: number, isReset: boolean): number | undefined {
  const trimmed = text?.trim() ?? "";
  if (NUMBER.test(trimmed)) {
    const number = Number(trimmed);
    if (!isReset || number < EPOCH_SECONDS) return Math.ceil(number * 1000 - 1e-6);
    return Math.max(0, (number < EPOCH_MS ? number * 1000 : number) - serverNow);
  }
  if (isReset && DURATION.test(trimmed)) {
    let ms = 0;
    for (const [, amount, unit] of trimmed.matchAll(PART)) ms += Number(amount) * (UNITS[unit as string] as number);
    return Math.ceil(ms - 1e-6);
  }
  const at = dateOf(trimmed);
  return at === undefined ? undefined : Math.max(0, at - serverNow);
}

/**
 * The values of a field: if a proxy has added its own, it is a list. A date contains a comma itself, before the day of
 * the month.
 */
const partsOf = (text: Field): string[] => (typeof text === "string" ? text.split(/,(?! ?\d\d?[ -][A-Z])/) : []);

/** The wait of `Retry-After`, of which the longest counts. */
function longestIn(text: Field, serverNow: number): number | undefined {
  const waits = partsOf(text).map((part) => waitIn(part, serverNow, false) ?? Number.NaN);
  // Not by one call of `Math.max`: a server may send more than a call takes.
  const longest = waits.reduce((a, b) => Math.max(a, b), -Infinity);
  return Number.isFinite(longest) ? longest : undefined;
}

/** The beginnings of an HTTP date in its three forms (RFC 9110, 5.6.7) and of RFC 3339; a time; and a zone, or asctime's year. */
const DATE =
  /^(?:[A-Z][a-z]{2,8}, ?\d|[A-Z]\w\w [A-Z]\w\w [ \d]\d |(\d{4}-\d\d-\d\dT)).*?:\d\d(?:\.\d+)?(?: ?(Z|GMT|UTC|[+-]\d\d:?\d\d)| \d{4})?$/;

/** A date's epoch ms. `Date.parse` alone accepts much more, and without a zone it takes the host's; here it is GMT then. */
function dateOf(text: Field): number | undefined {
  const match = DATE.exec(text ?? "");
  if (match === null) return undefined;
  const [date, isIso, zone] = match;
  const at = Date.parse(zone !== undefined ? date : date + (isIso === undefined ? " GMT" : "Z"));
  return Number.isNaN(at) ? undefined : at;
}

/**
 * The server's limits that a response reports, in any form in use: `RateLimit` of the IETF drafts 6 to 11,
 * `X-RateLimit-*` with its many kinds of reset, those of vendors with several limits, and `Retry-After`.
 *
 * ```ts
 * const { limits, retryAfter } = readRateLimit(response.headers);
 * ```
 *
 * If a client has them in an object, as Axios, got and `request` of undici, make a `Headers` of that:
 * `readRateLimit(new Headers(response.headers as Record<string, string>))`.
 *
 * Malformed fields are ignored. So is everything but `Retry-After` in a cached response (`Age`), which is out of date.
 * Dates are of the server's clock, as its `Date` field has it; `now` (epoch ms) is the fallback.
 *
 * Throws an `InputError` if `fields` has no `get`, never because of what a server sends.
 */
export function readRateLimit(fields: FieldSource, now: number = Date.now()): ServerLimits {
  if (typeof (fields as Partial<FieldSource> | null | undefined)?.get !== "function") {
    throw new InputError("fields", "a Headers, such as response.headers", fields);
  }
  if (typeof now !== "number" || !Number.isFinite(now)) throw new InputError("now", "a finite number of ms", now);
  const serverNow = dateOf(fields.get("Date")) ?? now;
  const ms = numberIn(fields.get("Retry-After-Ms")) ?? numberIn(fields.get("X-Ms-Retry-After-Ms"));
  const retryAfter = ms ?? longestIn(fields.get("Retry-After"), serverNow);
  const isCached = (numberIn(fields.get("Age")) ?? 0) > 0;
  for (const read of isCached ? [] : [drafts, draft7, single]) {
    const limits = read(fields, serverNow);
    if (limits.length > 0) return { limits, retryAfter };
  }
  return { limits: [], retryAfter };
}
