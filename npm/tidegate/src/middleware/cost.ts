import { fieldTable, checkFields } from "../limit/config.ts";
import { InputError } from "../limit/errors.ts";
import type { Incoming } from "./client.ts";

/**
 * A cost that the client states, in a header or a query parameter, held between bounds. What is absent, repeated or no
 * plain decimal number (`-1`, `NaN`, `1e308`) costs `default`: make that what an honest client would pay at least.
 */
export interface StatedCost {
  /** The header's name, such as `"x-cost"`. Either this or `query`. */
  header?: string | undefined;
  /** The query parameter's name, such as `"limit"`. */
  query?: string | undefined;
  /** Tokens where nothing usable is stated; default 1. */
  default?: number | undefined;
  /** The least a request costs, whatever is stated: 0 to `default`; default 1, or `default` where that is less. */
  min?: number | undefined;
  /** The most: from `default` to 2^40. */
  max: number;
}

/** Tokens that a request takes: a number (default 1), a function of the request, or what the client states, in bounds. */
export type Cost<R> = number | StatedCost | ((request: R) => number | PromiseLike<number>);

const FIELDS = fieldTable("header", "query", "default", "min", "max");
const NUMBER = /^\d{1,40}(?:\.\d{1,40})?$/;

/** Checks the bounds once, and returns what reads a request. */
export function statedCost(rule: StatedCost): (incoming: Incoming) => number {
  if (typeof rule !== "object" || rule === null) {
    throw new InputError("cost", "a number, a function, or an object with header or query, and max", rule);
  }
  checkFields(rule, FIELDS, "cost");
  const { header, query, default: otherwise = 1, min = Math.min(1, otherwise), max } = rule;
  const name = header ?? query;
  if (typeof name !== "string" || name === "" || (header !== undefined && query !== undefined)) {
    throw new InputError("cost", "with the name of either a header or a query parameter", name);
  }
  for (const [field, value, least, most] of [
    ["max", max, 0, 2 ** 40],
    ["default", otherwise, 0, max],
    ["min", min, 0, otherwise],
  ] as const) {
    if (typeof value !== "number" || !(value >= least && value <= most)) {
      throw new InputError(`cost.${field}`, `a number of tokens from ${least} to ${most}`, value);
    }
  }
  const read = header === undefined ? queryOf(name) : headerOf(name.toLowerCase());
  return (incoming) => {
    const text = read(incoming);
    if (text === undefined || text.length > 100 || !NUMBER.test(text)) return otherwise;
    return Math.min(Math.max(Number(text), min), max);
  };
}

/** A header's text; hosts join a repeated one by commas, so that it is no number. */
export function headerOf(name: string): (incoming: Incoming) => string | undefined {
  return ({ headers }) => {
    if (headers === undefined || headers === null) return undefined;
    if ("get" in headers && typeof headers.get === "function") return headers.get(name) ?? undefined;
    const value: unknown = Object.hasOwn(headers, name) ? (headers as Record<string, unknown>)[name] : undefined;
    return Array.isArray(value) ? value.join(",") : typeof value === "string" ? value : undefined;
  };
}

/** A query parameter's text; one that is repeated is none. */
export function queryOf(name: string): (incoming: Incoming) => string | undefined {
  return (incoming) => {
    const url = incoming.originalUrl ?? incoming.url ?? "";
    const at = url.indexOf("?");
    if (at < 0) return undefined;
    const values = new URLSearchParams(url.slice(at + 1).split("#", 1)[0]).getAll(name);
    return values.length === 1 ? values[0] : undefined;
  };
}
