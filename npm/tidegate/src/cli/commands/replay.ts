import { writeFileSync } from "node:fs";
import { type AddonSource, here, loadAddon, packageOf } from "../../engine/addon.ts";
import {
  type Arguments,
  type Command,
  EXIT,
  flag,
  number,
  read,
  type Terminal,
  text,
  texts,
  UsageError,
} from "../command.ts";

const HELP = `Usage: tidegate replay <log...> (--policy <file> | --limit <limit> | --suggest) [options]

Tells what a limit would have done to the traffic in a log, decided by the engine that a server
uses, on the log's clock.

The log: files in their order, - for the standard input; gzip'd or not. Common and combined access
logs, a JSON object on each line, or CSV with a line of names.
  --format <format>   common, json or csv; default: told by the first lines
  --time <field>      when a request came; default time, timestamp, ts, @timestamp and the like
  --cost <field>      the tokens it takes; default: as the policy says, or 1

The limits:
  --policy <file>     a policy document (JSON)
  --limit <limit>     "rate=10 period=1s capacity=20"; also kind=fixed_window, name, maxReserved,
                      start. May be repeated: a request is granted where all grant it
  --key <field>       whose limit it is; default: as the policy says, or ip. Repeated: one key of
                      several fields; none: all share one limit. In JSON, dots lead inwards:
                      req.headers.x-api-key
  --max-keys <n>      most keys held for each limit; default 1000000

The answer:
  --suggest           propose the tightest rate and capacity within the budget
  --budget <share>    the share of requests that may be denied, such as 0.1% (the default with
                      --suggest). Without --suggest: exit with 1 beyond it
  --period <time>     of a proposal without a limit: 1s, 5m, …; default 1m
  --json              the report as JSON
  --html <file>       picture and report as one page
  --svg <file>        the picture alone

Example:
  tidegate replay access.log --limit "rate=10 period=1m capacity=20" --html report.html`;

/** What crates/replay hands back. */
interface Replayed {
  readonly report: {
    readonly denied: number;
    readonly read: { readonly requests: number };
  };
  readonly text: string;
  readonly svg: string | null;
  readonly html: string | null;
}

/** `0.1%` or `0.001`; whether it is one, the engine says. */
function shareOf(written: string): number {
  return written.trim().endsWith("%") ? Number.parseFloat(written) / 100 : Number(written);
}

function keyOf(args: Arguments): readonly string[] | undefined {
  const fields = texts(args, "key");
  if (fields.length === 0) return undefined;
  if (!fields.includes("none")) return fields;
  if (fields.length > 1) throw new UsageError("--key none stands alone");
  return [];
}

function optionsOf(args: Arguments, terminal: Terminal): object {
  if (args.positionals.length === 0) throw new UsageError("replay needs a log, or - for the standard input");
  const policy = text(args, "policy");
  const maxKeys = number(args, "max-keys");
  if (maxKeys !== undefined && !(Number.isInteger(maxKeys) && maxKeys >= 1 && maxKeys < 2 ** 32)) {
    throw new UsageError(`--max-keys must be a whole number from 1 to 4294967295; got ${maxKeys}`);
  }
  const format = text(args, "format");
  if (format !== undefined && !["common", "combined", "json", "csv"].includes(format)) {
    throw new UsageError(`--format must be common, json or csv; got ${JSON.stringify(format)}`);
  }
  const budget = text(args, "budget");
  return {
    files: args.positionals,
    format: format === "combined" ? "common" : format,
    time: text(args, "time"),
    cost: text(args, "cost"),
    key: keyOf(args),
    policy: policy === undefined ? undefined : read(terminal, policy),
    limits: texts(args, "limit"),
    maxKeys,
    suggest: flag(args, "suggest") ? (budget ?? "0.1%") : undefined,
    budget,
    period: text(args, "period"),
    chart: text(args, "html") !== undefined || text(args, "svg") !== undefined,
  };
}

/** One line for a progress display. */
function progressOf([bytes, total, requests, done]: readonly number[]): string {
  const count = `${(requests as number).toLocaleString("en")} requests`;
  if (done === 1) return `${count} read; looking for the smallest capacity …`;
  if (Number.isNaN(total)) return `${count}, ${Math.round((bytes as number) / 1e6)} MB`;
  const share = Math.min((bytes as number) / Math.max(total as number, 1), 1);
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

/** Why there is no replay here: it runs in the addon alone, since it reads files and threads are native. */
function noAddon(source: AddonSource, causes: readonly Error[]): UsageError {
  const why = causes.map(({ message }) => message.split("\n")[0]).join("; caused by: ");
  return new UsageError(
    `replay runs in the native addon, and ${packageOf(source)} is not here: ${why}. There are addons for Linux (x64, arm64; glibc, musl), macOS (x64, arm64) and Windows (x64, arm64); npm leaves them out with --omit=optional`,
  );
}

/** `tidegate replay`, with the addon of this process or, in a test, of another. */
export function replayWith(source: () => AddonSource): Command {
  return {
    name: "replay",
    summary: "tell what a limit would have done to the traffic in a log",
    help: HELP,
    options: {
      ...Object.fromEntries(
        ["policy", "format", "time", "cost", "max-keys", "budget", "period", "html", "svg"].map(
          (name) => [name, { type: "string" }] as const,
        ),
      ),
      key: { type: "string", multiple: true },
      limit: { type: "string", multiple: true },
      suggest: { type: "boolean" },
      json: { type: "boolean" },
    },
    async run(args, terminal) {
      const options = optionsOf(args, terminal);
      const from = source();
      const found = loadAddon(from);
      if (!("addon" in found)) throw noAddon(from, found.causes);
      let replayed: Replayed;
      try {
        const step = (progress: number[]) => terminal.status?.(progressOf(progress));
        replayed = JSON.parse(await found.addon.replay(JSON.stringify(options), step)) as Replayed;
      } catch (error) {
        throw new UsageError((error as Error).message);
      } finally {
        terminal.status?.("");
      }
      write(text(args, "html"), replayed.html);
      write(text(args, "svg"), replayed.svg);
      terminal.out(flag(args, "json") ? JSON.stringify(replayed.report, undefined, 2) : replayed.text.trimEnd());
      const budget = text(args, "budget");
      const {
        denied,
        read: { requests },
      } = replayed.report;
      const beyond = budget !== undefined && !flag(args, "suggest") && denied > shareOf(budget) * requests;
      return beyond ? EXIT.found : EXIT.fine;
    },
  };
}

/** `tidegate replay`. */
export const replay: Command = replayWith(here);
