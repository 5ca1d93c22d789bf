/** What other parts of the package check of a limiter that they are given, and of the names of its limits. */
import { hasMethods } from "../limit/checks.ts";
import { InputError, show } from "../limit/errors.ts";
import { meant } from "../limit/nearest.ts";

/** The most names that a sentence lists. */
const MAX_LISTED = 20;

/** The error for a name that is none of those defined. */
export function unknownName(name: unknown, defined: readonly string[], field = "name"): InputError {
  const listed = defined.slice(0, MAX_LISTED).map(show);
  if (defined.length > MAX_LISTED) listed.push(`and ${defined.length - MAX_LISTED} more`);
  const rule = `one of the limits defined: ${listed.join(", ") || "none is"}`;
  return new InputError(field, rule, name, show(name) + meant(name, defined, '"'));
}

/** A field of an observed limiter: itself, and the limiter that it observes. A wrapper may inherit this field. */
export const OBSERVED: unique symbol = /* @__PURE__ */ Symbol.for("tidegate.observed");

/**
 * The limiter behind an observed one, for calls that the application did not make; any other limiter is returned as it
 * is.
 */
export function unobserved<L extends object>(limiter: L): L {
  const { [OBSERVED]: found } = limiter as { readonly [OBSERVED]?: { readonly by: unknown; readonly limiter: L } };
  return found?.by === limiter ? found.limiter : limiter;
}

/** Throws unless it has these methods of a limiter. */
export function checkLimiter(limiter: unknown, ...methods: readonly ("limit" | "limitAll" | "give")[]): void {
  if (!hasMethods(limiter, ...methods)) throw notALimiter(limiter);
}

export const notALimiter = (value: unknown, got?: string): InputError =>
  new InputError("limiter", "what defineLimits returns", value, got);

/** Throws unless it is a name and, if the limiter lists its names, one of them. */
export function checkDefined(name: unknown, defined: readonly string[] | undefined): void {
  if (typeof name !== "string") throw new InputError("name", "the name of a limit", name);
  if (defined?.includes(name) === false) throw unknownName(name, defined);
}
