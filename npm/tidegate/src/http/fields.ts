/** The rate-limit fields of a response, in each draft that clients read. */
import { ANY, type Check, checkTable } from "../limit/checks.ts";
import { isBytes } from "../limit/realms.ts";
import { checkJitter } from "../limit/jitter.ts";
import { InputError, show } from "../limit/errors.ts";
import { grantFields, type GrantFields } from "./grant-fields.ts";
import { type Decided, type Quota, type Quotas, quotasOf, type RetryOptions, tighter } from "./quota.ts";
import { byteSequence, quotedName } from "./structured.ts";

/**
 * A generation of the fields: `"draft-11"` is the current IETF draft (`RateLimit: "name";r=50;t=30`), `"draft-7"` and
 * `"draft-6"` are what many clients still read, `"x-ratelimit"` is GitHub's, whose reset is in epoch seconds.
 */
export type HeaderFamily = "draft-11" | "draft-7" | "draft-6" | "x-ratelimit";

/** Settings of {@link rateLimitHeaders}. */
export interface RateLimitHeaderOptions extends RetryOptions {
  /** Which fields: one family or several; default `"draft-11"`. Draft-11 and draft-7 have the same field, so not both. */
  fields?: HeaderFamily | readonly HeaderFamily[] | undefined;
  /** What a token is, if it is not a request: the policy's `qu` (draft-11). */
  unit?: "requests" | "content-bytes" | "concurrent-requests" | undefined;
  /** Which partition of the limit it is: `pk` (draft-11). Nothing that the client may not see. */
  partitionKey?: Uint8Array | undefined;
}

/** Writes a family's fields; `newest` is whether those of draft-11, whose policy has another syntax, are written too. */
type Writer = (quotas: readonly Quota[], options: RateLimitHeaderOptions, newest: boolean) => Record<string, string>;

const WRITERS: Readonly<Record<HeaderFamily, Writer>> = {
  "draft-11": draft11,
  "draft-7": draft7,
  "draft-6": draft6,
  "x-ratelimit": xRateLimit,
};
export const FAMILIES = Object.keys(WRITERS) as readonly HeaderFamily[];
const FIELDS = `${FAMILIES.join(", ")}, or an array of these`;
const UNITS: readonly unknown[] = ["requests", "content-bytes", "concurrent-requests"];
const OPTIONS: Readonly<Record<keyof RateLimitHeaderOptions, Check>> = {
  fields: ANY,
  unit: { expects: `one of ${UNITS.join(", ")}`, accepts: (unit) => UNITS.includes(unit) },
  partitionKey: { expects: "a Uint8Array", accepts: isBytes },
  jitter: ANY,
};

function familiesOf(fields: RateLimitHeaderOptions["fields"] = "draft-11"): readonly HeaderFamily[] {
  const families = typeof fields === "string" ? [fields] : fields;
  if (!Array.isArray(families)) throw new InputError("fields", FIELDS, fields);
  for (const family of families as readonly HeaderFamily[]) {
    if (FAMILIES.includes(family)) continue;
    // Between draft-8 and draft-11 the fields have the same syntax.
    const newer = /^draft-(8|9|10)$/.test(family) ? '; use "draft-11", which has the same fields' : "";
    throw new InputError("fields", FIELDS, family, show(family) + newer);
  }
  if (families.includes("draft-11") && families.includes("draft-7")) {
    throw new InputError("fields", "only one of draft-11 and draft-7: both write the field RateLimit", fields, "both");
  }
  return families;
}

/** Throws if an option of the fields is wrong. */
export function checkHeaderOptions(options: RateLimitHeaderOptions): void {
  checkTable("headers", options, OPTIONS);
  familiesOf(options.fields);
  // On grants too, where nothing is spread: a mistake would otherwise show at the first denial.
  if (options.jitter !== undefined) checkJitter(options.jitter);
}

const tightest = (quotas: readonly Quota[]): Quota => quotas.reduce((a, b) => (tighter(b, a) ? b : a));
/** The reset of the older families: as in the newest, but after a denial never before a retry is granted. */
const resetSeconds = (quota: Quota): number => quota.retryAfterSeconds ?? (quota.withinSeconds as number);
const policiesOf = (quotas: readonly Quota[]): string =>
  quotas.map((quota) => `${quota.quota};w=${quota.windowSeconds}`).join(", ");

/** draft-ietf-httpapi-ratelimit-headers-11: its parameter names are here and nowhere else. */
function draft11(quotas: readonly Quota[], options: RateLimitHeaderOptions): Record<string, string> {
  const { unit, partitionKey } = options;
  const pk = partitionKey === undefined ? "" : `;pk=${byteSequence(partitionKey)}`;
  const qu = unit === undefined || unit === "requests" ? "" : `;qu="${unit}"`;
  const name = (quota: Quota): string => quotedName(quota.name);
  const known = quotas.filter((quota) => quota.remaining !== undefined);
  const limits = known.map((quota) => `${name(quota)};r=${quota.remaining};t=${quota.withinSeconds}${pk}`);
  return {
    "RateLimit-Policy": quotas.map((q) => `${name(q)};q=${q.quota}${qu};w=${q.windowSeconds}${pk}`).join(", "),
    ...(limits.length === 0 ? {} : { RateLimit: limits.join(", ") }),
  };
}

function draft7(quotas: readonly Quota[]): Record<string, string> {
  const quota = tightest(quotas);
  const reset = quota.remaining === undefined ? "" : `, remaining=${quota.remaining}, reset=${resetSeconds(quota)}`;
  return { "RateLimit-Policy": policiesOf(quotas), RateLimit: `limit=${quota.quota}${reset}` };
}

function draft6(quotas: readonly Quota[], _: RateLimitHeaderOptions, newest: boolean): Record<string, string> {
  const quota = tightest(quotas);
  return {
    ...(newest ? {} : { "RateLimit-Policy": policiesOf(quotas) }),
    "RateLimit-Limit": String(quota.quota),
    ...(quota.remaining === undefined
      ? {}
      : { "RateLimit-Remaining": String(quota.remaining), "RateLimit-Reset": String(resetSeconds(quota)) }),
  };
}

function xRateLimit(quotas: readonly Quota[]): Record<string, string> {
  const quota = tightest(quotas);
  const { remaining, now, retryAt } = quota;
  const reset = Math.ceil((retryAt ?? now + (quota.withinSeconds as number) * 1000) / 1000);
  return {
    "X-RateLimit-Limit": String(quota.quota),
    ...(remaining === undefined
      ? {}
      : { "X-RateLimit-Remaining": String(remaining), "X-RateLimit-Reset": String(reset) }),
  };
}

function write({ quotas, retryAfterSeconds }: Quotas, options: RateLimitHeaderOptions): Record<string, string> {
  const families = familiesOf(options.fields);
  if (quotas.length === 0) return {};
  const fields: Record<string, string> = {};
  for (const family of families) Object.assign(fields, WRITERS[family](quotas, options, families.includes("draft-11")));
  if (retryAfterSeconds !== undefined) fields["Retry-After"] = String(retryAfterSeconds);
  return fields;
}

/**
 * The rate-limit fields of a response, all computed from the decision and its instant.
 *
 * `Retry-After` is set only on a denial that a wait helps: seconds, rounded up, at least 1, so a client that waits is never
 * early. Tokens are rounded down, and their time never lets a client exceed the policy's rate. A limit denied before its
 * state was read (`"exceeds capacity"`), or decided without its store, has only its policy. One in shadow mode has nothing.
 *
 * ```ts
 * const d = limits.limit("sendMessage", { key });
 * if (!d.ok) return new Response("slow down", { status: 429, headers: rateLimitHeaders(d) });
 * ```
 *
 * Takes a decision, several, or what `limitAll` returns. Throws an `InputError` if an option is not one of its values.
 * Source: draft-ietf-httpapi-ratelimit-headers-11; RFC 9110, 10.2.3; RFC 9651 for the syntax.
 */
export function rateLimitHeaders(decided: Decided, options: RateLimitHeaderOptions = {}): Record<string, string> {
  checkHeaderOptions(options);
  const grant = grantedBy(decided, options);
  return grant === undefined
    ? write(quotasOf(decided, options), options)
    : { "RateLimit-Policy": grant.policy, RateLimit: grant.limit };
}

/** The fields of a single grant, if they are those of draft-11 alone. */
const grantedBy = (
  decided: Decided,
  { fields = "draft-11", unit, partitionKey }: RateLimitHeaderOptions,
): GrantFields | undefined =>
  fields === "draft-11" && unit === undefined && partitionKey === undefined ? grantFields(decided) : undefined;

/** Where {@link appendRateLimitHeaders} writes: a `Headers`, or a response of `node:http`. */
export type HeaderTarget =
  | { get(name: string): string | null; set(name: string, value: string): void }
  | {
      getHeader(name: string): number | string | readonly string[] | undefined;
      setHeader(name: string, value: string): unknown;
    };

function checkTarget(target: HeaderTarget): void {
  const { getHeader, setHeader, get, set } = (target ?? {}) as Partial<Record<string, unknown>>;
  if (typeof setHeader === "function" && typeof getHeader === "function") return;
  if (setHeader === undefined && typeof set === "function" && typeof get === "function") return;
  throw new InputError("target", "a Headers, or a response of node:http", target);
}

/**
 * Adds a list's items to those of an earlier limiter. A name occurs once: the item with fewer tokens left remains, of equal
 * ones that of the longer time.
 */
function joined(earlier: string, added: string): string {
  const items = new Map<string, string>();
  for (const item of [...itemsOf(earlier), ...itemsOf(added)]) {
    const name = /^"(?:[^"\\]|\\.)*"/.exec(item)?.[0] ?? item;
    const known = items.get(name);
    if (known === undefined || isTighter(numbersOf(item), numbersOf(known))) items.set(name, item);
  }
  return [...items.values()].join(", ");
}

const itemsOf = (list: string): string[] =>
  list.match(/(?:"(?:[^"\\]|\\.)*"?|[^",])+/g)?.map((item) => item.trim()) ?? [];
/** An item's remainder and its time, or nothing if it is of a policy. Other limiters write a space after `;`. */
const numbersOf = (item: string): number[] => /; *r=(\d+)(?:; *t=)?(\d*)/.exec(item)?.slice(1).map(Number) ?? [];
const isTighter = ([r = Infinity, t = 0]: number[], [r2 = Infinity, t2 = 0]: number[]): boolean =>
  r === r2 ? t > t2 : r < r2;

function read(target: HeaderTarget, name: string): string | undefined {
  const value = "getHeader" in target ? target.getHeader(name) : target.get(name);
  return value === undefined || value === null ? undefined : String(value);
}

function set(target: HeaderTarget, name: string, value: string): void {
  if ("setHeader" in target) target.setHeader(name, value);
  else target.set(name, value);
}

/** Draft-7's `RateLimit`. */
const isSingle = (value: string): boolean => value.startsWith("limit=");

/** Adds items to a list that may be absent. */
function add(target: HeaderTarget, name: string, items: string): void {
  const earlier = read(target, name);
  // Draft-7's single value is no item of a list: with it in one, no client could read either.
  set(target, name, earlier === undefined || isSingle(earlier) ? items : joined(earlier, items));
}

/** The fields that are lists, to which a second limiter appends. */
const isList = (name: string, value: string): boolean => /^RateLimit(-Policy)?$/.test(name) && !isSingle(value);

/** What the single-valued fields have of `Remaining` or `Reset`; NaN if there is none. */
function numberIn(word: string, get: (name: string) => string | undefined): number {
  const draft7 = (word === "Reset" ? /reset=(\d+)/ : /remaining=(\d+)/).exec(get("RateLimit") ?? "")?.[1];
  return Number(draft7 ?? get(`RateLimit-${word}`) ?? get(`X-RateLimit-${word}`) ?? Number.NaN);
}

/**
 * Writes {@link rateLimitHeaders} if an earlier limiter may have written its own: lists grow, `Retry-After` keeps the
 * longer wait, and of the older families' single values those of the tighter limit stay.
 *
 * ```ts
 * appendRateLimitHeaders(response.headers, decision); // or a node:http response
 * ```
 *
 * Throws an `InputError` if the target takes no headers, or as {@link rateLimitHeaders} does.
 */
export function appendRateLimitHeaders(
  target: HeaderTarget,
  decided: Decided,
  options: RateLimitHeaderOptions = {},
): void {
  checkTarget(target);
  checkHeaderOptions(options);
  appendChecked(target, decided, options);
}

/** {@link appendRateLimitHeaders} on a target and with options that were checked before. */
export function appendChecked(target: HeaderTarget, decided: Decided, options: RateLimitHeaderOptions): void {
  const grant = grantedBy(decided, options);
  if (grant !== undefined) {
    add(target, "RateLimit-Policy", grant.policy);
    add(target, "RateLimit", grant.limit);
    return;
  }
  const found = quotasOf(decided, options);
  const [first] = found.quotas;
  if (first !== undefined) appendFields(target, write(found, options), first.now);
}

/** Seconds of a `Retry-After`, which may be a date; 0 if it is absent, or neither. */
function waitIn(field: string, now: number): number {
  const seconds = field.endsWith(" GMT") ? (Date.parse(field) - now) / 1000 : Number(field);
  return seconds > 0 ? seconds : 0;
}

/** Adds the fields of a decision at `now` to those of earlier limiters. */
export function appendFields(target: HeaderTarget, fields: Readonly<Record<string, string>>, now: number): void {
  const earlierWait = waitIn(read(target, "Retry-After") ?? "", now);
  const wait = Number(fields["Retry-After"] ?? 0);
  // Of two denials the longer wait; of two grants the smaller remainder, or the longer time; a denial before a grant.
  const written = (name: string): string | undefined => read(target, name);
  const own = (name: string): string | undefined => fields[name];
  const [was, is] = [numberIn("Remaining", written), numberIn("Remaining", own)];
  const less = was === is ? numberIn("Reset", written) < numberIn("Reset", own) : !(was <= is);
  const tighter = wait === earlierWait ? less : wait > earlierWait;
  for (const [name, value] of Object.entries(fields)) {
    if (isList(name, value)) add(target, name, value);
    else if (read(target, name) === undefined || tighter) set(target, name, value);
  }
}
