/** Tables of options: one row per option has its bounds, its check and the text of its error. */
import { type Duration, inMs } from "./duration.ts";
import { InputError, show, showInstead, shownName } from "./errors.ts";
import { meant } from "./nearest.ts";
import { PLAIN, tagOf } from "./realms.ts";

/** Throws if a field has no row: a misspelt field would otherwise be ignored. */
export function checkFields(given: object, table: Table, what: string): void {
  for (const field in given) if (!Object.hasOwn(table, field)) unknownField(field, given, table, what);
}

/** Throws, unless it is the prototype's, which is not the caller's. */
export function unknownField(field: string, given: object, known: object, what: string): void {
  if (!Object.hasOwn(given, field)) return;
  throw notAField(field, Object.keys(known), what, (given as Record<string, unknown>)[field]);
}

export function notAField(field: string, known: readonly string[], what: string, value: unknown): InputError {
  const got = show(value) + meant(field, known, "`");
  return new InputError(shownName(field), `absent: ${what} has ${known.join(", ")}`, value, got);
}

/** What an option must be: as a phrase after "must be", and as a predicate. */
export interface Check {
  readonly expects: string;
  readonly accepts: (value: unknown) => boolean;
}
export type Table = Readonly<Record<string, Check>>;

export const numberFrom = (expects: string, min: number, max: number): Check => ({
  expects,
  accepts: (value) => typeof value === "number" && value >= min && value <= max,
});
export const integerFrom = (expects: string, min: number, max: number = Infinity): Check => ({
  expects,
  accepts: (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
});
/** A length of time: ms within bounds, or a string with a unit; {@link msOf} converts what it accepts. */
export function durationFrom(min: number, max: number = Infinity, integer = false): Check {
  const expects = `${integer ? "an integer" : "a number"} of ms from ${min}${max === Infinity ? "" : ` to ${max}`}, or a string such as "30s"`;
  const { accepts } = (integer ? integerFrom : numberFrom)(expects, min, max);
  return { expects, accepts: (value) => accepts(inMs(value)) };
}
export const msOf = (duration: Duration): number => inMs(duration) as number;

/** The same, or a function that returns such a value for each call. */
export const orFunction = ({ expects, accepts }: Check): Check => ({
  expects,
  accepts: (value) => typeof value === "function" || accepts(value),
});
export const functionThat = (expects: string): Check => ({ expects, accepts: (value) => typeof value === "function" });

export const FUNCTION: Check = /* @__PURE__ */ functionThat("a function");
export const FLAG: Check = { expects: "true or false", accepts: (value) => typeof value === "boolean" };
export const STRING: Check = { expects: "a string", accepts: (value) => typeof value === "string" };
export const SIGNAL: Check = {
  expects: "an AbortSignal",
  accepts: (value) =>
    FLAG.accepts((value as Partial<AbortSignal> | null | undefined)?.aborted) &&
    hasMethods(value, "addEventListener", "removeEventListener"),
};
/** For an option that is checked where it is used. */
export const ANY: Check = { expects: "", accepts: () => true };
/** A table of options that are all checked where they are used. */
export const fieldTable = (...names: readonly string[]): Table => Object.fromEntries(names.map((name) => [name, ANY]));

/** A string that is not empty. */
export const textThat = (expects: string): Check => ({
  expects,
  accepts: (value) => typeof value === "string" && value !== "",
});

/** Returns the value, or throws an `InputError` that names the field. */
export function check<T>(field: string, value: T, { expects, accepts }: Check): T {
  if (accepts(value)) return value;
  throw new InputError(field, expects, value);
}

/** {@link check} for an option that may be omitted. */
export function checkFlag(field: string, flag: unknown): void {
  if (flag !== undefined) check(field, flag, FLAG);
}

/** Throws an `InputError` unless the value is an object. */
export function checkObject(field: string, value: unknown, expects: string): asserts value is object {
  if (typeof value !== "object" || value === null) throw new InputError(field, expects, value);
}

/** Whether the value, which may be anything, has these methods. */
export const hasMethods = (value: unknown, ...methods: readonly string[]): boolean =>
  methods.every((method) => typeof Object(value)[method] === "function");

/** Throws unless the value has these methods: a library's client, or a host's binding. `shown` is what else it may be. */
export function checkMethods(
  field: string,
  value: unknown,
  methods: readonly string[],
  expects: string,
  shown: (value: unknown) => string = showInstead,
): void {
  if (!hasMethods(value, ...methods)) throw new InputError(field, expects, value, shown(value));
}

/** Throws if `options` is not an object, or a field has no row. */
export function checkOptions(what: string, options: unknown, table: Table, expects: string): asserts options is object {
  checkObject("options", options, expects);
  checkFields(options, table, what);
}

/**
 * Throws if `options` is not an object, or is one of a class of the language or the host, such as an array, a Map or a
 * promise, whose fields would not be read; and if a field has no row, or a value that its row rejects.
 */
export function checkTable(what: string, options: unknown, table: Table, expects?: string): void {
  if (tagOf(options) !== PLAIN) {
    throw new InputError("options", expects ?? `an object with any of ${Object.keys(table).join(", ")}`, options);
  }
  checkFields(options as object, table, what);
  // `Object.keys` would take twice the time of this loop.
  for (const field in table) {
    const value = (options as Record<string, unknown>)[field];
    if (value !== undefined && Object.hasOwn(table, field)) check(field, value, table[field] as Check);
  }
}
