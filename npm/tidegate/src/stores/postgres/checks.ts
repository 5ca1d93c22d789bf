/** Checks what callers pass, before anything is sent. */
import { InputError, showInstead } from "../../limit/errors.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Call } from "../contract.ts";

/** Returns settings: an object, or nothing. */
export function checkOptions<T extends object>(options: T | undefined): T | Record<string, never> {
  if (options === undefined) return {};
  if (typeof options === "object" && options !== null && !Array.isArray(options)) return options;
  throw new InputError("options", "an object of settings, or left out", options);
}

/** Returns a limit: one of this package, or of another copy of it. */
export function checkLimit(limit: Limit): Limit {
  const given = limit as Partial<Limit> | null | undefined;
  if (typeof given?.identity === "function" && typeof given.policy === "object") return limit;
  const rule = 'a Limit of "tidegate/store", as from new Limit(name, config)';
  throw new InputError("limit", rule, limit, showInstead(limit));
}

/** Returns a call whose limit is one. */
export function checkCall(call: Call): Call {
  if (typeof call !== "object" || call === null) {
    throw new InputError("call", "an object with op, limit, key, count and reserve", call);
  }
  checkLimit(call.limit);
  return call;
}

/** Returns an array of calls. */
export function checkCalls(calls: readonly Call[]): readonly Call[] {
  if (!Array.isArray(calls)) throw new InputError("calls", "an array of calls", calls, showInstead(calls));
  for (const call of calls) checkCall(call);
  return calls;
}

/** Returns an integer from 1 to `most`; `standard` where it is left out. */
export function integer(field: string, value: unknown, most: number, standard: number): number {
  if (value === undefined) return standard;
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new InputError(field, `a whole number from 1 to ${most}`, value);
}
