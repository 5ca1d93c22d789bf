import type { Format, Options } from "./module.ts";

type Rule = readonly [rule: string, accepts: (value: unknown) => boolean];

const isText = (value: unknown): boolean => typeof value === "string";
const TEXT = ["a string", isText] as const;
const SHARE = ['a string such as "0.1%"', isText] as const;
const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const FORMATS: readonly unknown[] = Object.keys({ common: 0, json: 0, csv: 0 } satisfies Record<Format, 0>);
export const FORMAT: Rule = ["common, json or csv", (value) => FORMATS.includes(value)];
const isKeys = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) < 2 ** 32;
export const MAX_KEYS: Rule = ["an integer from 1 to 4294967295", isKeys];
/** What each option must be; the module checks the words of other texts. */
const OPTIONS: Readonly<Record<keyof Options, Rule>> = {
  limits: ['an array of strings such as "rate=10 period=1m"', areTexts],
  policy: ["the text of a policy document, as JSON.stringify(document) returns it", isText],
  key: ["an array of strings", areTexts],
  suggest: SHARE,
  budget: SHARE,
  period: ['a string such as "1m"', isText],
  format: FORMAT,
  time: TEXT,
  cost: TEXT,
  maxKeys: MAX_KEYS,
  chart: ["true or false", (value) => typeof value === "boolean"],
};

/** A text, cut (of a URL only the scheme: it may have a password), and without characters that a terminal obeys. */
const shortened = (text: string): string =>
  JSON.stringify(text.replace(/^([^/ ]+:\/\/|.{80}).+/su, "$1…")).replace(/\p{C}/gu, "?");

/** A value in a few words: an object may have a password. */
function shown(value: unknown): string {
  if (typeof value === "string") return shortened(value);
  if (Array.isArray(value)) return "an array";
  if (value === null || value === undefined || typeof value === "number") return String(value);
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

const mistake = (field: string, rule: string, value: unknown): Error =>
  new Error(`\`${shortened(field).slice(1, -1)}\` must be ${rule}; got ${shown(value)}`);

/**
 * The options without those that are undefined, for which the module has no default.
 *
 * @throws an `Error` if an argument of `replay` has another type or an unknown field, which the module would ignore
 */
export function checkedOptions(files: unknown, options: Options): Options {
  if (!areTexts(files)) throw mistake("files", "an array of paths", files);
  if (typeof options !== "object" || options === null)
    throw mistake("options", "an object, such as { limits }", options);
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [field, value] of given) {
    const known = Object.hasOwn(OPTIONS, field) ? OPTIONS[field as keyof Options] : undefined;
    if (known === undefined) {
      throw mistake(field, `absent: replay has ${Object.keys(OPTIONS).join(", ")}`, value);
    }
    const [rule, accepts] = known;
    if (!accepts(value)) throw mistake(field, rule, value);
  }
  return Object.fromEntries(given);
}
