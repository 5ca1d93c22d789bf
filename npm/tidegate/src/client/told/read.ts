import { InputError } from "../../limit/errors.ts";
import { type Item, dictionary, list } from "./items.ts";
import { dateOf, resetAfter, retryAfter } from "./times.ts";

/** What a server tells of one of its limits. */
export interface ToldLimit {
  /** The limit's name; `"default"` where it has none. */
  readonly name: string;
  /** What is counted: `"requests"`, or what the server calls it (`"tokens"`, `"content-bytes"`, …). */
  readonly unit: string;
  /** The most there is, where it is told. */
  readonly limit: number | undefined;
  /** What is left, as a number from 0. */
  readonly remaining: number;
  /** ms, counted from the answer, for which no more than that may be used; `undefined` where it is not told. */
  readonly resetAfter: number | undefined;
}

/** What an answer tells. */
export interface Told {
  readonly limits: readonly ToldLimit[];
  /** ms to wait before the next request, counted from the answer. */
  readonly retryAfter: number | undefined;
}

/** Where fields are read: a `Headers`, or what looks like one. */
export interface FieldSource {
  get(name: string): string | null;
}

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;

/** The first number of a field: `100` and `100, 100;w=60` are both 100. */
function numberIn(text: string | null): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(?:$|[,;])/.exec(text ?? "");
  return match === null ? undefined : Number(match[1]);
}

const named = ({ kind, value }: Item): string | undefined =>
  kind === "string" || kind === "token" ? String(value) : undefined;

/** draft-8 to -11: `RateLimit: "name";r=50;t=30`, and what the policies of these names are. */
function drafts(fields: FieldSource): ToldLimit[] {
  const limits = list(fields.get("RateLimit") ?? "") ?? [];
  const policies = new Map<string | undefined, Item>();
  for (const policy of list(fields.get("RateLimit-Policy") ?? "") ?? []) policies.set(named(policy), policy);
  return limits.flatMap((item): ToldLimit[] => {
    const name = named(item);
    const remaining = count(item.parameters.get("r"));
    if (name === undefined || remaining === undefined) return [];
    // One policy is the limit's, whatever it is called.
    const policy = (policies.get(name) ?? (policies.size === 1 ? [...policies.values()][0] : undefined))?.parameters;
    const seconds = count(item.parameters.get("t"));
    const unit = policy?.get("qu") ?? "requests";
    return [
      {
        name,
        unit: String(unit),
        limit: count(policy?.get("q")),
        remaining,
        resetAfter: seconds === undefined ? undefined : seconds * 1000,
      },
    ];
  });
}

/** draft-7: `RateLimit: limit=100, remaining=50, reset=30`. */
function draft7(fields: FieldSource): ToldLimit[] {
  const told = dictionary(fields.get("RateLimit") ?? "");
  const remaining = count(told?.get("remaining")?.value);
  if (remaining === undefined) return [];
  const reset = count(told?.get("reset")?.value);
  const limit = count(told?.get("limit")?.value);
  return [
    { name: "default", unit: "requests", limit, remaining, resetAfter: reset === undefined ? undefined : reset * 1000 },
  ];
}

/** How families of single fields are called, with a place for limit, remaining and reset; and what they count. */
const FAMILIES: readonly (readonly [name: string, unit: string, field: (part: string) => string])[] = [
  ["default", "requests", (part) => `RateLimit-${part}`],
  ["default", "requests", (part) => `X-RateLimit-${part}`],
  ["default", "requests", (part) => `X-Rate-Limit-${part}`],
  ["requests", "requests", (part) => `X-RateLimit-${part}-Requests`],
  ["tokens", "tokens", (part) => `X-RateLimit-${part}-Tokens`],
  ["requests", "requests", (part) => `Anthropic-RateLimit-Requests-${part}`],
  ["tokens", "tokens", (part) => `Anthropic-RateLimit-Tokens-${part}`],
  ["input-tokens", "tokens", (part) => `Anthropic-RateLimit-Input-Tokens-${part}`],
  ["output-tokens", "tokens", (part) => `Anthropic-RateLimit-Output-Tokens-${part}`],
];

/** draft-6, `X-RateLimit-*`, and those of vendors that tell several limits. */
function single(fields: FieldSource, serverNow: number): ToldLimit[] {
  const found = FAMILIES.flatMap(([name, unit, field]): ToldLimit[] => {
    const remaining = numberIn(fields.get(field("Remaining")));
    if (remaining === undefined) return [];
    const reset = fields.get(field("Reset-After")) ?? fields.get(field("Reset"));
    const limit = numberIn(fields.get(field("Limit")));
    return [{ name, unit, limit, remaining, resetAfter: resetAfter(reset, serverNow) }];
  });
  // The same limit in an older family's words: the first says it best.
  return found.filter(({ name }, i) => found.findIndex((other) => other.name === name) === i);
}

/**
 * What an answer's fields tell of the server's limits, in any of the forms in use: `RateLimit` of the IETF drafts 6 to 11,
 * `X-RateLimit-*` with its many kinds of resets, those of vendors with several limits, and `Retry-After`.
 *
 * ```ts
 * const { limits, retryAfter } = readRateLimit(response.headers);
 * ```
 *
 * Malformed fields are ignored, and so is everything but `Retry-After` in an answer that a cache kept (`Age`): it is of
 * another time. Dates are read on the server's clock, which its `Date` tells; `now` is epoch ms and stands in for it.
 *
 * Throws an `InputError` where `fields` has no `get`, never because of what a server sends.
 */
export function readRateLimit(fields: FieldSource, now: number = Date.now()): Told {
  if (typeof (fields as Partial<FieldSource> | null | undefined)?.get !== "function") {
    throw new InputError("fields", "a Headers, such as response.headers", fields);
  }
  if (typeof now !== "number" || !Number.isFinite(now)) throw new InputError("now", "a finite number of ms", now);
  const serverNow = dateOf(fields.get("Date")) ?? now;
  const ms = numberIn(fields.get("Retry-After-Ms"));
  const wait = ms ?? retryAfter(fields.get("Retry-After"), serverNow);
  if ((numberIn(fields.get("Age")) ?? 0) > 0) return { limits: [], retryAfter: wait };
  for (const found of [drafts(fields), draft7(fields), single(fields, serverNow)]) {
    if (found.length > 0) return { limits: found, retryAfter: wait };
  }
  return { limits: [], retryAfter: wait };
}
