/**
 * The command line: `npx tidegate-replay`, and `npx tidegate replay`, which calls {@link run}.
 *
 * @module
 */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { HELP } from "./help.ts";
import { type Options, type Progress, replay, type Replayed } from "./index.ts";
import { FORMAT, MAX_KEYS } from "./options.ts";

/** What the command reads and writes. */
interface Terminal {
  /** Writes a line to standard output. */
  out(line: string): void;
  /** The text of a file, of standard input if the path is `-`. */
  read(path: string): string;
  /** Replaces the progress that is shown; absent if standard error is not a terminal. */
  status?: ((line: string) => void) | undefined;
}

/** A UTF-16 unit as an escape of JSON. */
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * The text with escapes in place of what a terminal obeys, and of what turns or hides text: clients choose keys, and others
 * write policies. JSON remains what it is.
 */
const printable = (text: string): string =>
  text.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (found) => found.split("").map(escaped).join(""));

/** A mistake in the command line, or a log that cannot be read: to be printed without a stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";

  constructor(message: string) {
    super(printable(message));
  }
}

const OPTIONS = {
  policy: { type: "string" },
  format: { type: "string" },
  time: { type: "string" },
  cost: { type: "string" },
  "max-keys": { type: "string" },
  budget: { type: "string" },
  period: { type: "string" },
  html: { type: "string" },
  svg: { type: "string" },
  key: { type: "string", multiple: true },
  limit: { type: "string", multiple: true },
  suggest: { type: "boolean" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "v" },
} as const;

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true, strict: true });
  } catch (error) {
    const { message } = error as Error;
    const [sentence = ""] = message.split(/\. |\.?\n/);
    const [, option] = /a dash use '(--.+)=/.exec(message) ?? [];
    const remedy = option === undefined ? "" : `: write ${option}=… if the value starts with a dash`;
    throw new UsageError(`${sentence}${remedy}; see tidegate-replay --help`);
  }
}

type Values = ReturnType<typeof parse>["values"];

/** Whether more than this share is denied, `0.1%` or `0.001`, which the engine checked. In its unit: 0.7 / 100 is less than 0.007. */
function isBeyond(budget: string, { denied, read }: Replayed["report"]): boolean {
  const whole = budget.trim().endsWith("%") ? 100 : 1;
  return (denied * whole) / read.requests > Number.parseFloat(budget);
}

function keyOf(fields: string[] | undefined): string[] | undefined {
  if (fields === undefined || !fields.includes("none")) return fields;
  if (fields.length > 1) throw new UsageError("--key none cannot be combined with other keys");
  return [];
}

function maxKeysOf(written: string | undefined): number | undefined {
  if (written === undefined) return undefined;
  const value = Number(written);
  if (written.trim() === "" || Number.isNaN(value))
    throw new UsageError(`--max-keys must be a number; got ${JSON.stringify(written)}`);
  const [rule, accepts] = MAX_KEYS;
  if (!accepts(value)) throw new UsageError(`--max-keys must be ${rule}; got ${value}`);
  return value;
}

function formatOf(written: string | undefined): Options["format"] {
  if (written === "combined") return "common";
  const [rule, accepts] = FORMAT;
  if (written === undefined || accepts(written)) return written as Options["format"];
  throw new UsageError(`--format must be ${rule}; got ${JSON.stringify(written)}`);
}

function policyOf(path: string | undefined, terminal: Terminal): string | undefined {
  try {
    return path === undefined ? undefined : terminal.read(path);
  } catch (error) {
    throw new UsageError(`cannot read ${path}: ${(error as Error).message}`);
  }
}

function optionsOf(values: Values, terminal: Terminal): Options {
  const { budget, suggest, html, svg } = values;
  const maxKeys = maxKeysOf(values["max-keys"]);
  return {
    format: formatOf(values.format),
    time: values.time,
    cost: values.cost,
    key: keyOf(values.key),
    policy: policyOf(values.policy, terminal),
    limits: values.limit ?? [],
    maxKeys,
    suggest: suggest === true ? (budget ?? "0.1%") : undefined,
    budget,
    period: values.period,
    chart: html !== undefined || svg !== undefined,
  };
}

/** The same text for every name of one file. */
function placeOf(path: string): string {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev} ${ino}`;
  } catch {
    return resolve(path);
  }
}

/** The page and the picture would otherwise replace the log, once it is read. */
function checkOutputs({ html, svg, policy }: Values, logs: readonly string[]): void {
  const taken = new Set(
    [...logs, policy].filter((path): path is string => path !== undefined && path !== "-").map(placeOf),
  );
  for (const [option, path] of Object.entries({ "--html": html, "--svg": svg })) {
    if (path === undefined) continue;
    if (path === "-")
      throw new UsageError(`${option} must be the path of a file; got "-": the report is printed there`);
    const place = placeOf(path);
    if (taken.has(place)) throw new UsageError(`${option} ${path} would replace a file of this command; name another`);
    taken.add(place);
  }
}

export function progressLine({ bytes, total, requests, read }: Progress): string {
  const count = `${requests.toLocaleString("en")} requests`;
  if (read) return `${count} read; looking for the smallest capacity …`;
  if (total === undefined) return `${count}, ${Math.round(bytes / 1e6)} MB`;
  const share = Math.min(bytes / Math.max(total, 1), 1);
  const filled = Math.round(share * 30);
  return `[${"#".repeat(filled)}${".".repeat(30 - filled)}] ${Math.floor(share * 100)} %  ${count}`;
}

function write(path: string | undefined, content: string | null): void {
  if (path === undefined || content === null) return;
  try {
    writeFileSync(path, content);
  } catch (error) {
    throw new UsageError(`cannot write ${path}: ${(error as Error).message}`);
  }
}

/**
 * Runs the command line and returns the exit code: 0, or 1 if more than `--budget` is denied.
 *
 * @throws {@link UsageError} if the command line or a log has a mistake
 */
export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(argv);
  if (values.help === true) {
    terminal.out(HELP);
    return 0;
  }
  if (values.version === true) {
    const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
    terminal.out((JSON.parse(manifest) as { version: string }).version);
    return 0;
  }
  if (positionals.length === 0) throw new UsageError("replay needs a log, or - for standard input");
  const options = optionsOf(values, terminal);
  checkOutputs(values, positionals);
  let replayed: Replayed;
  try {
    replayed = await replay(positionals, options, (progress) => terminal.status?.(progressLine(progress)));
  } catch (error) {
    throw new UsageError((error as Error).message);
  } finally {
    terminal.status?.("");
  }
  const { report, text, html, svg } = replayed;
  terminal.out(printable(values.json === true ? JSON.stringify(report, undefined, 2) : text.trimEnd()));
  write(values.html, html);
  write(values.svg, svg);
  const { budget, suggest } = values;
  return budget !== undefined && suggest !== true && isBeyond(budget, report) ? 1 : 0;
}
