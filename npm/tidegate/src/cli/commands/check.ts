import { SECOND } from "../../limit/duration.ts";
import { examine, numberOf } from "../../policies/check.ts";
import type { CheckedRule, PolicyProblem } from "../../policies/document.ts";
import { type Command, EXIT, flag, optionsOf, read } from "../command.ts";
import { jsonOf, printable } from "../output.ts";
import { UsageError } from "../usage.ts";

const HELP = `Usage: tidegate check <file>... [--json]

Checks policy documents, and prints every mistake in them: the rule, the field, what it must be, and
the value. A file named - is standard input. A note on standard error, which is not a mistake, names
each period of less than a second: 60 is 60 ms.

  --json   the same as JSON: one object for each file, with file, ok, rules, problems

Exit codes: 0 no mistakes; 1 mistakes; 2 a file cannot be read.

Example:
  tidegate check policy.json`;

interface Finding {
  readonly file: string;
  readonly ok: boolean;
  /** The names of the rules, the fallback's last; none if there are mistakes. */
  readonly rules: readonly string[];
  readonly problems: readonly PolicyProblem[];
}

export const check: Command = {
  name: "check",
  summary: "check policy documents, and print every mistake in them",
  help: HELP,
  options: optionsOf([], "json"),
  run(args, terminal) {
    const { positionals } = args;
    if (positionals.length === 0) throw new UsageError("check needs a file; see tidegate help check");
    const findings = positionals.map((file): Finding => {
      const { rules, fallback, problems } = examine(read(terminal, file));
      const all = [...rules, ...(fallback === undefined ? [] : [fallback])];
      for (const note of all.flatMap(shortPeriods)) terminal.err(`${file}: note: ${note}`);
      return { file, ok: problems.length === 0, rules: all.map(({ name }) => name), problems };
    });
    if (flag(args, "json")) terminal.out(jsonOf(findings));
    else for (const finding of findings) print(finding, terminal.out);
    return findings.every(({ ok }) => ok) ? EXIT.fine : EXIT.found;
  },
};

/** A note for each period, of the rule or its tiers, that may have been meant in seconds. */
function shortPeriods({ name, limit, tiers }: CheckedRule): string[] {
  const limits = [limit, ...(tiers?.settings ?? []).map((tier) => tier.limit)];
  const periods = new Set(limits.map(({ config }) => Number(config.period)));
  const short = [...periods].filter((period) => period < SECOND);
  return short.map((period) => `a period of ${name} is ${period} ms: a number without a unit is ms`);
}

function print({ file, rules, problems }: Finding, out: (line: string) => void): void {
  for (const { message } of problems) out(printable(`${file}: ${message}`));
  const limits = rules.length === 1 ? "1 limit" : `${rules.length} limits`;
  const mistakes = problems.length === 1 ? "1 mistake" : numberOf(problems);
  out(`${file}: ${problems.length === 0 ? `no mistakes, ${limits}` : mistakes}`);
}
