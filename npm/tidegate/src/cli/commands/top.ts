/** `tidegate top`: the keys that wait longest for a call, of all that a store holds. */
import { setTimeout as sleep } from "node:timers/promises";
import { defineLimits, type Store } from "../../index.ts";
import type { Decision } from "../../limit/decision.ts";
import { LONGEST_TIMER } from "../../limit/duration.ts";
import { InputError, StoreError } from "../../limit/errors.ts";
import { LOOK } from "../../limit/evaluator.ts";
import { Limit } from "../../limit/limit.ts";
import { textOf } from "../../policies/key-text.ts";
import { clients } from "../clients.ts";
import { type Arguments, type Command, EXIT, flag, number, optionsOf, type Terminal, text } from "../command.ts";
import {
  type DescribedLimit,
  documentLimit,
  documentLimits,
  LIMIT_HELP,
  LIMIT_OPTIONS,
  numbersLimit,
} from "../described-limit.ts";
import { PATIENCE } from "../in-time.ts";
import { at, ofStore, rounded, spanText } from "../key-state.ts";
import { jsonOf, messagesOf, visible } from "../output.ts";
import { type OpenStore, openStore, sharedStore } from "../store.ts";
import type { Pages } from "../stored-keys.ts";
import { durationOf, UsageError } from "../usage.ts";

const HELP = `Usage: tidegate top [<limit>] --store <url> --policy <file> [options]
       tidegate top <limit> --store <url> --rate <tokens> --period <time> [options]

Lists the keys that are denied a call for longest, then those with the smallest part of their
capacity left, and lists them again every 2 s until Ctrl-C. It changes nothing. It reads every key
that the store holds of the limits: with millions of keys, set a longer --every.

  <limit>                  the name of the limit, or of the document's rule; default every rule
                           without tiers
  --store <url>            redis://…, rediss://… or postgres://…, the app's own
  --count <tokens>         tokens of the call; default 1
  --rows <number>          how many keys to list at most; default 20
  --every <time>           how often: ms, or a string such as 10s; default 2s
  --once                   lists them once, the default if the output is not a terminal
  --json                   once, as JSON; times are epoch ms
  --prefix <text>          the prefix of the app's keys in Redis; default tidegate:
  --schema <name>          the app's schema in PostgreSQL; default tidegate

The limits, from a policy document:
  --policy <file>          the document (- reads standard input)
  --tier <name>            which of the rule's tiers; default its own algorithm_config

Or by the numbers of one, which must be the app's:
${LIMIT_HELP}
  --start <time>           where a fixed window's grid begins, or "first request"; default: by key

It connects to Redis with the package ioredis or redis of the project in this folder, and to
PostgreSQL with pg or postgres.

Exit codes: 0 listed; 1 the store failed; 2 the command line has mistakes.

Example:
  tidegate top --store redis://localhost --policy policies.json`;

/** A listed key, with the fields of a check. */
interface Row extends Pick<Decision, "limit" | "ok" | "retryAt" | "retryAfter" | "resetAt"> {
  readonly name: string;
  /** As requests have it; absent for a limit that all share. */
  readonly key: string | undefined;
  /** Tokens at `now`, which the check does not take; negative while tokens are owed. */
  readonly value: number;
}

interface List {
  /** Epoch ms of the store's clock. */
  readonly now: number;
  readonly count: number;
  /** How many keys the store holds of the limits; while Redis grows its table, it may list some twice. */
  readonly keys: number;
  /** How many of them are denied the call. */
  readonly denied: number;
  readonly rows: readonly Row[];
}

interface Listed extends DescribedLimit {
  readonly limit: Limit;
}

interface Listing {
  /** By name; at least one. */
  readonly limits: ReadonlyMap<string, Listed>;
  readonly count: number;
  readonly rows: number;
}

const waitOf = ({ ok, retryAfter = Number.MAX_VALUE }: Row): number => (ok ? 0 : retryAfter);

/** Longest wait first, then the smallest share of the capacity. */
const byNeed = (a: Row, b: Row): number => waitOf(b) - waitOf(a) || a.value / a.limit - b.value / b.limit;

const callOf = ({ count }: Listing) => ({ op: "check", count, reserve: false }) as const;

async function listOf(pages: Pages, listing: Listing, now: number): Promise<List> {
  const { limits, count, rows: most } = listing;
  const call = callOf(listing);
  let first = new Map<string, Row>();
  let [keys, denied] = [0, 0];
  for await (const page of pages) {
    for (const { name, key, state } of page) {
      const listed = limits.get(name);
      if (listed === undefined) continue;
      const { limit, limitKeys } = listed;
      const start = { start: limit.start(key) };
      const { ok, retryAt, retryAfter } = limit.evaluate(state, call, now, start).decision;
      // A check of 0 tokens: that of a granted call reports the tokens that the call would leave.
      const { value, limit: capacity, resetAt } = limit.evaluate(state, LOOK, now, start).decision;
      const shown = key === undefined || limitKeys === undefined ? key : textOf(key);
      const row = { name, key: shown, value, limit: capacity, ok, retryAt, retryAfter, resetAt };
      first.set(limit.identity(key), row);
      keys += 1;
      if (!ok) denied += 1;
    }
    first = new Map([...first].sort(([, a], [, b]) => byNeed(a, b)).slice(0, most));
  }
  return { now, count, keys, denied, rows: [...first.values()] };
}

/** Longer keys are cut. */
const KEY_WIDTH = 48;

function cut(text: string): string {
  const chars = [...text];
  return chars.length <= KEY_WIDTH ? text : `${chars.slice(0, KEY_WIDTH - 1).join("")}…`;
}

/** The lines that a person reads. */
export function listLines({ now, count, keys, denied, rows }: List): string[] {
  const tokens = count === 1 ? "1 token" : `${rounded(count)} tokens`;
  const head = `${at(now)}  ${denied} of ${keys} keys are denied a call for ${tokens}`;
  if (rows.length === 0) return [head];
  const cells = rows.map(({ name, key, value, limit, ok, retryAfter }) => [
    name,
    key === undefined ? "(all share it)" : cut(visible(key)),
    `${rounded(value)} of ${rounded(limit)}`,
    ok ? "-" : retryAfter === undefined ? "ever" : spanText(retryAfter),
  ]);
  const table = [["limit", "key", "tokens", "denied for"], ...cells];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => [...(row[column] as string)].length)));
  const line = (row: string[]): string =>
    row.map((cell, i) => cell + " ".repeat(Math.max((widths[i] ?? 0) - [...cell].length, 0))).join("  ");
  return [head, "", ...table.map((row) => line(row).trimEnd())];
}

function limitsOf(args: Arguments, terminal: Terminal): readonly DescribedLimit[] {
  const [name] = args.positionals;
  if (text(args, "policy") !== undefined) {
    if (name !== undefined) return [documentLimit(args, terminal, "limit", name)];
    return documentLimits(args, terminal);
  }
  if (name === undefined) throw new UsageError("top needs the name of a limit, or --policy; see tidegate help top");
  return [numbersLimit(args, "top", name)];
}

function positive(args: Arguments, name: string, otherwise: number): number {
  const given = number(args, name) ?? otherwise;
  if (!Number.isInteger(given) || given < 1) throw new InputError(`--${name}`, "an integer of at least 1", given);
  return given;
}

/** How often at most, ms. */
const SHORTEST = 100;

function everyOf(args: Arguments): number {
  const every = number(args, "every", durationOf) ?? 2000;
  if (every >= SHORTEST && every <= LONGEST_TIMER) return every;
  throw new InputError("--every", `a time from ${SHORTEST} ms to ${LONGEST_TIMER} ms`, every);
}

function urlOf(args: Arguments): string {
  const [url, kind] = sharedStore(text(args, "store"), "top", ["redis", "postgres"]);
  if (kind === "file")
    throw new UsageError(
      "--store must be redis://… or postgres://…: a folder has hashes of keys, which cannot be listed",
    );
  return url;
}

async function read(opened: OpenStore, listing: Listing): Promise<List> {
  const { store, shown, keys } = opened;
  const limits = defineLimits<string, Store>({}, { store, timeout: PATIENCE, log: false });
  const [[name, { config }]] = [...listing.limits] as [[string, Listed]];
  const { now } = ofStore(await limits.check(name, { config, count: 0 }));
  try {
    return await listOf(keys?.() as Pages, listing, now);
  } catch (cause) {
    throw new StoreError(messagesOf(cause), { store: store.name, operation: "list", identity: shown, cause });
  }
}

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  if (args.positionals.length > 1)
    throw new UsageError(`top takes one limit, and no ${JSON.stringify(args.positionals[1])}; see tidegate help top`);
  const url = urlOf(args);
  const described = limitsOf(args, terminal);
  const limits = new Map(described.map((one) => [one.name, { ...one, limit: new Limit(one.name, one.config) }]));
  const listing = { limits, count: number(args, "count") ?? 1, rows: positive(args, "rows", 20) };
  // Throws if the count is none.
  for (const { limit } of limits.values()) limit.evaluate(null, callOf(listing), 0);
  const every = everyOf(args);
  const settings = { prefix: text(args, "prefix"), schema: text(args, "schema"), timeout: PATIENCE };
  const opened = await openStore(url, clients, settings);
  try {
    if (flag(args, "json")) terminal.out(jsonOf(await read(opened, listing)));
    else if (flag(args, "once") || terminal.screen === undefined) {
      for (const line of listLines(await read(opened, listing))) terminal.out(line);
    } else {
      for (;;) {
        terminal.screen(listLines(await read(opened, listing)));
        await sleep(every);
      }
    }
    return EXIT.fine;
  } finally {
    await opened.close();
  }
}

const TEXTS = ["store", "count", "rows", "every", "prefix", "schema", "policy", "tier", ...LIMIT_OPTIONS];

export const top: Command = {
  name: "top",
  summary: "list the keys that are denied longest, live",
  help: HELP,
  options: optionsOf(TEXTS, "once", "json"),
  run,
};
