import { evaluate, type State } from "../../index.ts";
import type { Decision } from "../../limit/decision.ts";
import { InputError } from "../../limit/errors.ts";
import { type HeaderFamily, rateLimitHeaders, statusOf } from "../../http/index.ts";
import { FAMILIES } from "../../http/fields.ts";
import { Limit } from "../../limit/limit.ts";
import { shadowed } from "../../policies/enforcement.ts";
import {
  type Arguments,
  type Command,
  EXIT,
  flag,
  number,
  optionsOf,
  readJson,
  type Terminal,
  text,
  texts,
} from "../command.ts";
import { UsageError } from "../usage.ts";
import { type DescribedLimit, documentLimit, LIMIT_HELP, LIMIT_OPTIONS, numbersLimit } from "../described-limit.ts";

const HELP = `Usage: tidegate headers --rate <tokens> --period <time> [options]
       tidegate headers --policy <file> --rule <name> [options]
       tidegate headers --decision <file>

Prints the rate-limit headers of a response, in each family, for one call on one limit.

The limit:
${LIMIT_HELP}
  --start <time>           where a fixed window's grid begins; default 0
  --name <name>            its name; default "default"

Or from a policy document:
  --policy <file>          the document (- reads standard input)
  --rule <name>            which of its rules; one in shadow mode has no headers
  --tier <name>            which of the rule's tiers; default its own algorithm_config

The stored state; default a fresh key's:
  --value <tokens>         tokens at --ts
  --ts <ms>                epoch ms; default --now

The call:
  --count <tokens>         default 1
  --reserve                tokens may be owed
  --now <ms>               epoch ms; default now

  --decision <file>        a decision as JSON, instead of all of these (- reads standard input)
  --fields <family>        only this family (repeatable): ${FAMILIES.join(", ")}
  --json                   the same as JSON

Example:
  tidegate headers --rate 10 --period 1m --capacity 20 --value 0 --now 1700000000000`;

const DESCRIBING = ["name", "policy", "rule", "tier", ...LIMIT_OPTIONS, "value", "ts", "count", "now"];

function limitOf(args: Arguments, terminal: Terminal): DescribedLimit {
  const name = text(args, "name");
  if (text(args, "policy") === undefined) {
    if (text(args, "rule") !== undefined) throw new UsageError("--rule needs --policy");
    return numbersLimit(args, "headers", name ?? "default");
  }
  if (name !== undefined) throw new UsageError("--name cannot be combined with --policy: the document has it");
  const rule = text(args, "rule");
  if (rule === undefined) throw new UsageError("--policy needs --rule, the name of one of its rules");
  return documentLimit(args, terminal, "--rule", rule);
}

/** The decision of the call that the options describe, under the limit's own name. */
function decide(args: Arguments, terminal: Terminal): Decision {
  const { name, config, shadow } = limitOf(args, terminal);
  const limit = new Limit(name, config);
  const now = number(args, "now") ?? terminal.now();
  const value = number(args, "value");
  if (value === undefined && text(args, "ts") !== undefined)
    throw new UsageError("--ts is the time of --value: give both");
  const state: State | null = value === undefined ? null : { value, ts: number(args, "ts") ?? now };
  const { decision } = evaluate(state, config, { now, count: number(args, "count"), reserve: flag(args, "reserve") });
  const decided = { ...decision, policy: limit.policy };
  return shadow === true ? shadowed(decided) : decided;
}

function familiesOf(args: Arguments): readonly HeaderFamily[] {
  const families = texts(args, "fields") as HeaderFamily[];
  for (const family of families) {
    if (FAMILIES.includes(family)) continue;
    throw new InputError("--fields", `one of ${FAMILIES.join(", ")}, and is repeated for several`, family);
  }
  return families.length === 0 ? FAMILIES : families;
}

/** `tidegate headers`: the fields of a response. */
export const headers: Command = {
  name: "headers",
  summary: "print the header fields that a decision gives, of each family",
  help: HELP,
  options: {
    ...optionsOf([...DESCRIBING, "decision"], "reserve", "json"),
    fields: { type: "string", multiple: true },
  },
  run(args, terminal) {
    const families = familiesOf(args);
    const file = text(args, "decision");
    if (args.positionals.length > 0) throw new UsageError(`headers takes no ${JSON.stringify(args.positionals[0])}`);
    const beside = [...DESCRIBING, "reserve"].find((option) => args.values[option] !== undefined);
    if (file !== undefined && beside !== undefined)
      throw new UsageError(`--${beside} cannot be combined with --decision: the decision has it`);
    const decision = file === undefined ? decide(args, terminal) : (readJson(terminal, file) as Decision);
    const fields = Object.fromEntries(
      families.map((family) => [family, rateLimitHeaders(decision, { fields: family })]),
    );
    const status = statusOf(decision);
    if (flag(args, "json")) {
      terminal.out(JSON.stringify({ status, fields }, undefined, 2));
      return EXIT.fine;
    }
    terminal.out(`status ${status}`);
    for (const [family, lines] of Object.entries(fields)) {
      terminal.out(`\n${family}`);
      for (const [name, line] of Object.entries(lines)) terminal.out(`  ${name}: ${line}`);
    }
    return EXIT.fine;
  },
};
