/** The commands that read and change one key on a store: `get`, `reset`, `give`, `charge`, `block`, `unblock`. */
import { defineLimits, type Limiter, type Store } from "../../index.ts";
import { InputError } from "../../limit/errors.ts";
import { HASHED } from "../../policies/key-text.ts";
import { type KeyValues, keyOfValues } from "../../policies/target.ts";
import { clients } from "../clients.ts";
import { type Arguments, type Command, EXIT, flag, number, optionsOf, type Terminal, text } from "../command.ts";
import { type DescribedLimit, documentLimit, LIMIT_HELP, LIMIT_OPTIONS, numbersLimit } from "../described-limit.ts";
import { PATIENCE } from "../in-time.ts";
import { ofStore, readState, stateLines, type Target } from "../key-state.ts";
import { jsonOf } from "../output.ts";
import { folderOf, openStore, sharedStore } from "../store.ts";
import { durationOf, UsageError } from "../usage.ts";

type Name = "get" | "reset" | "give" | "charge" | "block" | "unblock";

/** A command. `run` changes the key, before its state is printed. */
interface KeyCommand {
  readonly name: Name;
  readonly summary: string;
  /** What it does, as a sentence; the state is printed after it. */
  readonly does: string;
  /** The option of its own, and its line of the help. */
  readonly own?: readonly ["count" | "for", string];
  run?(limits: Limiter<string, Store>, name: string, target: Target, own: number): Promise<unknown>;
}

const COMMANDS: readonly KeyCommand[] = [
  {
    name: "get",
    summary: "print the state of one key on a store",
    does: "Prints the state of one key: its tokens, whether a call is granted, and from when on.",
    own: ["count", "tokens of the call; default 1"],
  },
  {
    name: "reset",
    summary: "fill the limit of one key",
    does: "Fills the limit of one key: it has its capacity, and owes nothing.",
    run: async (limits, name, target) => limits.reset(name, target),
  },
  {
    name: "give",
    summary: "return tokens to one key",
    does: "Returns tokens to one key, up to the capacity.",
    own: ["count", "how many; default 1"],
    run: async (limits, name, target, count) => ofStore(await limits.give(name, { ...target, count })),
  },
  {
    name: "charge",
    summary: "take tokens from one key, without a denial",
    does: "Takes tokens from one key that are already spent: it may owe them then.",
    own: ["count", "how many; default 1"],
    run: async (limits, name, target, count) => ofStore(await limits.charge(name, { ...target, count })),
  },
  {
    name: "block",
    summary: "deny every call of one key for a time",
    does: "Denies every call of one key for a time. A block is debt: give pays it, and unblock ends it.",
    own: ["for", "how long: a string such as 15m, or ms from 1000"],
    run: async (limits, name, target, length) => ofStore(await limits.block(name, { ...target, for: length })),
  },
  {
    name: "unblock",
    summary: "end the block of one key, which is a reset",
    does: "Ends the block of one key, and all that it owes: the same as reset.",
    run: async (limits, name, target) => limits.unblock(name, target),
  },
];

function helpOf({ name, does, own }: KeyCommand): string {
  const [option, about] = own ?? [];
  const sample = option === "for" ? " --for 15m" : "";
  const ownLine =
    option === undefined ? "" : `\n  --${option} <${option === "for" ? "time" : "tokens"}>`.padEnd(28) + about;
  return `Usage: tidegate ${name} <limit> [<key>...] --store <url> --policy <file> [options]
       tidegate ${name} <limit> [<key>] --store <url> --rate <tokens> --period <time> [options]

${does}
${name === "get" ? "It changes nothing." : "Then it prints the state of the key."}

  <limit>                  the name of the limit, or of the document's rule
  <key>                    the value of each of the rule's limit_keys, in order; without a document,
                           the key itself. Omit it for a limit that all share. A key that starts
                           with a dash goes last, after --${ownLine}
  --store <url>            redis://…, rediss://…, postgres://… or file:<folder>, the app's own
  --key <json>             the key as JSON, instead of <key>: a string, or an array in which null is
                           a part that requests lack
  --prefix <text>          the prefix of the app's keys in Redis; default tidegate:
  --schema <name>          the app's schema in PostgreSQL; default tidegate
  --json                   the state as JSON; times are epoch ms

The limit, from a policy document:
  --policy <file>          the document (- reads standard input)
  --tier <name>            which of the rule's tiers; default its own algorithm_config

Or by its numbers, which must be the app's:
${LIMIT_HELP}
  --start <time>           where a fixed window's grid begins, or "first request"; default: by key

It connects to Redis with the package ioredis or redis of the project in this folder, and to
PostgreSQL with pg or postgres.

Exit codes: 0 done; 1 the store failed; 2 the command line has mistakes, and nothing was changed.

Example:
  tidegate ${name} api 203.0.113.7${sample} --store redis://localhost --policy policies.json`;
}

/** The key of the arguments; `undefined` for none. */
function givenKey(args: Arguments, values: readonly string[]): KeyValues | undefined {
  const written = text(args, "key");
  if (written === undefined) return values.length < 2 ? values[0] : values;
  if (values.length > 0) throw new UsageError("--key cannot be combined with <key>");
  const rule = `JSON: a string such as '"ann"', or an array of strings and null such as '["acme", null]'`;
  let key: unknown;
  try {
    key = JSON.parse(written);
  } catch {
    throw new InputError("--key", rule, written);
  }
  const isPart = (part: unknown): boolean => typeof part === "string" || part === null;
  if (typeof key === "string" || (Array.isArray(key) && key.every(isPart))) return key as KeyValues;
  throw new InputError("--key", rule, written);
}

function storedKey({ name, limitKeys }: DescribedLimit, given: KeyValues | undefined): string | undefined {
  // As `top` and the console list a key that is too long.
  const isHash = limitKeys !== undefined && limitKeys.length > 0 && typeof given === "string" && HASHED.test(given);
  if (limitKeys !== undefined && !isHash) return keyOfValues(name, limitKeys, given);
  if (given === undefined || typeof given === "string") return given;
  const rule = "one text: only a rule of --policy has a key of several parts";
  throw new InputError("key", rule, given, JSON.stringify(given));
}

/** The URL of the store. A folder must exist: opening it would make one. */
function urlOf(args: Arguments, command: string, terminal: Terminal): string {
  const [url, kind] = sharedStore(text(args, "store"), command, ["file", "redis", "postgres"]);
  if (kind === "file" && !terminal.exists(folderOf(url)))
    throw new UsageError(
      `--store must be a folder that an app has made; there is none at ${url.slice("file:".length)}`,
    );
  return url;
}

/** The number of the command's own option, checked before the store is opened. */
function ownNumber(args: Arguments, { name, own }: KeyCommand): number {
  if (own?.[0] !== "for") return number(args, "count") ?? 1;
  const length = number(args, "for", durationOf);
  if (length === undefined) throw new UsageError(`${name} needs --for, how long; such as --for 15m`);
  return length;
}

async function operate(command: KeyCommand, args: Arguments, terminal: Terminal): Promise<number> {
  const [name, ...values] = args.positionals;
  if (name === undefined)
    throw new UsageError(`${command.name} needs the name of a limit; see tidegate help ${command.name}`);
  const url = urlOf(args, command.name, terminal);
  const hasDocument = text(args, "policy") !== undefined;
  const limit = hasDocument ? documentLimit(args, terminal, "limit", name) : numbersLimit(args, command.name, name);
  const given = givenKey(args, values);
  const key = storedKey(limit, given);
  const { config } = limit;
  const target = key === undefined ? { config } : { key, config };
  const own = ownNumber(args, command);
  // On a store in memory: what is wrong with the call is an error before the real one is opened.
  const trial = defineLimits<string, Store>({});
  await command.run?.(trial, name, target, own);
  const count = command.name === "get" ? own : 1;
  await readState(trial, name, target, given, count);

  const timeout = PATIENCE;
  const opened = await openStore(url, clients, { prefix: text(args, "prefix"), schema: text(args, "schema"), timeout });
  try {
    const limits = defineLimits<string, Store>({}, { store: opened.store, timeout, log: QUIET });
    await command.run?.(limits, name, target, own);
    const state = await readState(limits, name, target, given, count).catch((error: unknown) => {
      if (command.run !== undefined) terminal.err(`tidegate: ${command.name} is done; its state cannot be read`);
      throw error;
    });
    if (flag(args, "json")) terminal.out(jsonOf(state));
    else for (const line of stateLines(state)) terminal.out(line);
    return EXIT.fine;
  } finally {
    await opened.close();
  }
}

/** The error itself is printed. */
const QUIET = { error: () => {}, info: () => {} };

const OPTIONS = ["store", "key", "prefix", "schema", "policy", "tier", ...LIMIT_OPTIONS];

/** `tidegate get`, `reset`, `give`, `charge`, `block` and `unblock`. */
export const operations: readonly Command[] = COMMANDS.map((command) => {
  const { name, summary, own } = command;
  return {
    name,
    summary,
    help: helpOf(command),
    options: optionsOf(own === undefined ? OPTIONS : [...OPTIONS, own[0]], "json"),
    run: (args, terminal) => operate(command, args, terminal),
  };
});
