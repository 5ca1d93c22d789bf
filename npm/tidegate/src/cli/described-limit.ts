/** The limit that options of a command describe: one by its numbers, or a rule of a policy document. */
import type { Config } from "../index.ts";
import { FIRST_REQUEST } from "../limit/config.ts";
import { InputError } from "../limit/errors.ts";
import { examine } from "../policies/check.ts";
import type { CheckedRule } from "../policies/document.ts";
import { limitKeysOf } from "../policies/rule.ts";
import { type Arguments, number, read, type Terminal, text } from "./command.ts";
import { durationOf, UsageError } from "./usage.ts";

/** A limit; of a document's rule, the `limit_keys`, and whether it is in shadow mode. */
export interface DescribedLimit {
  readonly name: string;
  readonly config: Config;
  readonly limitKeys?: readonly string[] | undefined;
  readonly shadow?: boolean;
}

/** The options of a limit by its numbers. */
export const LIMIT_OPTIONS = ["rate", "period", "kind", "capacity", "max-reserved", "start"] as const;

export const LIMIT_HELP = `  --rate <tokens>          tokens added per period
  --period <time>          the period: ms, or a string such as 15m
  --kind <kind>            token_bucket (default) or fixed_window
  --capacity <tokens>      most that accumulate; default the rate
  --max-reserved <tokens>  most that may be owed`;

/** The limit of `--rate`, `--period` and so on. */
export function numbersLimit(args: Arguments, command: string, name: string): DescribedLimit {
  if (text(args, "tier") !== undefined) throw new UsageError("--tier needs --policy");
  const kind = text(args, "kind")?.replace("_", " ") ?? "token bucket";
  const [capacity, maxReserved] = [number(args, "capacity"), number(args, "max-reserved")];
  const start = text(args, "start") === FIRST_REQUEST ? FIRST_REQUEST : number(args, "start", durationOf);
  const [rate, period] = [number(args, "rate"), number(args, "period", durationOf)];
  if (rate === undefined || period === undefined)
    throw new UsageError(`--rate and --period are needed, or --policy; see tidegate help ${command}`);
  // A token bucket has no field of this name.
  const grid = start === undefined ? {} : { start };
  return { name, config: { kind, rate, period, capacity, maxReserved, ...grid } as Config };
}

/** The rules of the document `--policy`, the fallback last. */
function rulesOf(args: Arguments, terminal: Terminal): readonly CheckedRule[] {
  const file = text(args, "policy") as string;
  const beside = LIMIT_OPTIONS.find((option) => text(args, option) !== undefined);
  if (beside !== undefined) throw new UsageError(`--${beside} cannot be combined with --policy: the document has it`);
  const { rules, fallback, problems } = examine(read(terminal, file));
  if (problems.length > 0) throw new UsageError(`${file} has mistakes; see tidegate check ${file}`);
  return [...rules, ...(fallback === undefined ? [] : [fallback])];
}

/** The rules of the document `--policy` that have no tiers: a key's tier is only known from its requests. */
export function documentLimits(args: Arguments, terminal: Terminal): readonly DescribedLimit[] {
  if (text(args, "tier") !== undefined) throw new UsageError("--tier needs the name of its rule");
  const rules = rulesOf(args, terminal);
  const without = rules.filter(({ tiers }) => tiers === undefined);
  if (without.length === 0) throw new UsageError("every rule has tiers: name one of them, and its --tier");
  for (const { name, tiers } of rules) {
    if (tiers !== undefined) terminal.err(`tidegate: ${name} has tiers, so it is not listed: name it, and its --tier`);
  }
  return without.map((rule) => ({ name: rule.name, config: rule.limit.config, limitKeys: limitKeysOf(rule) }));
}

/** The rule of the document `--policy`, or its `--tier`. `field` is the argument that names the rule. */
export function documentLimit(args: Arguments, terminal: Terminal, field: string, name: string): DescribedLimit {
  const known = rulesOf(args, terminal);
  const rule = known.find((one) => one.name === name);
  if (rule === undefined) throw new InputError(field, `one of ${known.map((one) => one.name).join(", ")}`, name);
  const wanted = text(args, "tier");
  const tiers = rule.tiers?.settings ?? [];
  const names = tiers.map((tier) => tier.name).join(", ");
  // A key of a tier has other numbers: a block would end sooner or later than is printed.
  if (wanted === undefined && names !== "")
    terminal.err(`tidegate: ${name} has tiers (${names}): for a key of one of them, give its --tier`);
  const chosen = wanted === undefined ? rule : tiers.find((tier) => tier.name === wanted);
  if (chosen === undefined)
    throw new InputError("--tier", names === "" ? "absent: the rule has no tiers" : `one of ${names}`, wanted);
  return { name, config: chosen.limit.config, limitKeys: limitKeysOf(rule), shadow: rule.shadow };
}
