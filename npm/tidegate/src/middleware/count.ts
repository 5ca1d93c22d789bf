/** How many tokens a request takes: a number, or what the client states. */
import { MAX_COUNT } from "../engine/generated/bounds.ts";
import { headerIn } from "../http/client-ip.ts";
import { check, checkFields, fieldTable, checkObject, numberFrom } from "../limit/checks.ts";
import { TOKENS } from "../limit/tokens.ts";
import { InputError } from "../limit/errors.ts";
import type { Incoming } from "./client-key.ts";
import { follow, type MaybePromise } from "../limit/maybe-promise.ts";

/**
 * A count that the client states, in a header or a query parameter, clamped to bounds. A value that is absent or no plain
 * decimal number (`-1`, `NaN`, `1e308`) counts as `default`: choose at least what an honest client would pay. Of a repeated
 * parameter the largest counts; a repeated header, which hosts join by commas, is not a number.
 */
interface StatedCount {
  /** The header's name, such as `"x-count"`. Either this or `query`. */
  header?: string | undefined;
  /** The query parameter's name, such as `"limit"`. */
  query?: string | undefined;
  /** Tokens if no usable number is stated; default 1. */
  default?: number | undefined;
  /** The least that a request takes: 0 to `default`; default 1, or `default` if that is less. */
  min?: number | undefined;
  /** The most: from `default` to 2^40. */
  max: number;
}

/**
 * Tokens that a request takes: a number (default 1), a function of the request, or what the client states, in bounds. A
 * function that returns no such number, or `undefined`, fails the request.
 */
export type Count<R> = number | StatedCount | ((request: R) => MaybePromise<number>);

const FIELDS = fieldTable("header", "query", "default", "min", "max");
const NUMBER = /^\d{1,40}(?:\.\d{1,40})?$/;
const RULE = `a number of tokens from 0 to ${MAX_COUNT}, a function, or { header or query, max }`;

/** Checks the setting once, and returns the function that counts a request. */
export function countOf<R>(count: Count<R>): (request: R, incoming: Incoming) => MaybePromise<number> {
  // The limiter would take 1 for `undefined`: of a body, a client may leave out what the function reads.
  if (typeof count === "function")
    return (request) => follow(count(request), (tokens) => check("count", tokens, TOKENS));
  if (typeof count === "number" && TOKENS.accepts(count)) return () => count;
  checkObject("count", count, RULE);
  const stated = statedCount(count);
  return (_, incoming) => stated(incoming);
}

function checkBound(field: string, value: number, most: number): void {
  check(`count.${field}`, value, numberFrom(`a number of tokens from 0 to ${most}`, 0, most));
}

/** Checks the bounds once, and returns the function that reads a request. */
export function statedCount(rule: StatedCount): (incoming: Incoming) => number {
  checkFields(rule, FIELDS, "count");
  const { header, query, default: otherwise = 1, max } = rule;
  const name = header ?? query;
  if (typeof name !== "string" || name === "" || (header !== undefined && query !== undefined)) {
    throw new InputError("count", "with the name of either a header or a query parameter", name);
  }
  checkBound("max", max, MAX_COUNT);
  checkBound("default", otherwise, max);
  const { min = Math.min(1, otherwise) } = rule;
  checkBound("min", min, otherwise);
  const counted = (text: string): number =>
    NUMBER.test(text) ? Math.min(Math.max(Number(text), min), max) : otherwise;
  const [read, field] = header === undefined ? [queryValues, name] : [headerValues, name.toLowerCase()];
  // Handlers read the first value or the last.
  return (incoming) => {
    const [most = otherwise] = read(field, incoming)
      .map(counted)
      .sort((a, b) => b - a);
    return most;
  };
}

/** The texts of a header, by its name in lower case: several if it is repeated, and the host does not join them. */
export function headerValues(name: string, { headers }: Incoming): readonly string[] {
  const listed: unknown = Object.hasOwn(Object(headers), name) ? (headers as Record<string, unknown>)[name] : undefined;
  if (Array.isArray(listed)) return listed as string[];
  const text = headerIn(headers, name);
  return text === undefined ? [] : [text];
}

/**
 * The texts of a query parameter that any handler may read. Some read what is behind a `#` (Fastify, Polka) or a second `?`
 * (Koa), or `[n]` and `n[]` as `n` (qs, as in Express 4); to others it is absent. So such a text is listed twice: as if it
 * were repeated.
 */
export function queryValues(name: string, { url = "" }: Incoming): readonly string[] {
  const [, query = "", rest = ""] = /^[^?#]*(\?[^#]*)?(#.*)?/s.exec(url) as RegExpExecArray;
  const isPlain = rest === "" && query[1] !== "?";
  const others = isPlain ? [] : [query.slice(1), (query + rest).slice(1), rest.slice(rest.indexOf("?") + 1)];
  const values: string[] = [];
  for (const text of [query, ...others]) {
    new URLSearchParams(text).forEach((value, found) => {
      if (found === name && text === query) values.push(value);
      else if (`${found}[`.startsWith(`${name}[`) || found.startsWith(`[${name}]`)) values.push(value, value);
    });
  }
  return values;
}
