/** The script that runs on the server: its arguments and its replies. */

import { isBytes } from "../../limit/realms.ts";
import type { State } from "../../limit/decision.ts";
import type { Call, Op } from "../contract.ts";
import SCRIPT from "./tidegate.lua";

export { SCRIPT };

/** Its digest, by which it is called; a test compares the two. */
export const SCRIPT_SHA1 = "11ff345fb645cbc4557db08997744c4f529c230b";

/** How it replies: with bytes, or for clients that carry none with decimals of 17 digits. */
export type Form = "bytes" | "text";

/** A call, or a reset. */
export type Action = Omit<Call, "op"> & { readonly op: Op | "reset" };

/** What one request does to a key, by which numbers. */
export class Rule {
  /** As the script reads them: doubles are the shortest decimals that read back to their bits. */
  readonly args: readonly string[];
  /** The same without the defaults at the end. */
  readonly shortArgs: readonly string[];
  readonly op: Action["op"];
  readonly count: number;
  readonly reserve: boolean;
  /** Start of the window grid, ms; infinite: the first request. Read only for a fixed window. */
  readonly start: number;
  /** Whether the numbers are those of one shard. */
  readonly shard: boolean;

  constructor({ op, limit, count, reserve }: Action, start: number, shard: boolean) {
    this.op = op;
    this.count = count;
    this.reserve = reserve;
    this.start = start;
    this.shard = shard;
    const { kind, rate, period, capacity, maxReserved, shards } = limit.policy;
    const parts = shard ? shards : 1;
    const owed = maxReserved === undefined ? "unlimited" : `${maxReserved / parts}`;
    const grid = start === Infinity ? "first request" : `${start}`;
    const one = shard ? `${1 / parts}` : "";
    const optional = [op, op === "block" ? one : reserve ? owed : "", kind === "fixed window" ? grid : ""];
    this.args = [`${count}`, `${rate / parts}`, `${period}`, `${capacity / parts}`, ...optional];
    this.shortArgs = optional[2] || optional[1] ? this.args : this.args.slice(0, op === "take" ? 4 : 5);
  }

  /** Whether it is the rule of this action, on the same limit. */
  is({ op, count, reserve }: Action, start: number, shard: boolean): boolean {
    return (
      this.op === op && this.count === count && this.reserve === reserve && this.start === start && this.shard === shard
    );
  }
}

/** A step of the script: one request, or several of which all are carried out or none. */
type Step = readonly { readonly redisKey: string; readonly rule: Rule }[];
type Steps = readonly { readonly requests: Step }[];

/** Keys that go through one rule, each `times` times; or, with `all`, each through its own, all or none. */
interface Run {
  readonly keys: string[];
  readonly all: readonly Rule[] | undefined;
  readonly rule: Rule | undefined;
  times: number;
}

/** The script's keys and arguments for these steps. The second argument, the deadline, is empty. */
export function encode(steps: Steps, form: Form, now: number | undefined): { keys: string[]; args: string[] } {
  const clock = now === undefined ? "" : `${now}`;
  const [first] = steps;
  const only = steps.length === 1 && first?.requests.length === 1 ? first.requests[0] : undefined;
  if (only !== undefined) {
    const { rule } = only;
    const args = now === undefined ? [form, "", ...rule.shortArgs] : [form, "", ...rule.args, clock];
    return { keys: [only.redisKey], args };
  }
  const numbers = new Map<Rule, string>();
  const args = [form, "", "many", clock, ""];
  const numberOf = (rule: Rule): string => {
    let number = numbers.get(rule);
    if (number === undefined) {
      number = `${numbers.size + 1}`;
      numbers.set(rule, number);
      args.push(...rule.args);
    }
    return number;
  };
  const keys: string[] = [];
  const runs: string[] = [];
  for (const { keys: own, all, rule, times } of runsOf(steps)) {
    keys.push(...own);
    runs.push(`${own.length}`);
    if (all === undefined) runs.push(`${times}`, numberOf(rule as Rule));
    else runs.push("all", ...all.map(numberOf));
  }
  args[4] = `${numbers.size}`;
  args.push(...runs);
  return { keys, args };
}

/** Steps on one key stay in order. A step on a key of its own joins those with the same rule, wherever they are. */
function runsOf(steps: Steps): Run[] {
  const runs: Run[] = [];
  const last = new Map<string, Run>();
  const open = new Map<Rule, Run>();
  for (const { requests: step } of steps) {
    const { redisKey, rule } = step[0] as Step[0];
    const before = last.get(redisKey);
    let run: Run | undefined;
    if (step.length > 1) {
      run = { keys: step.map((one) => one.redisKey), all: step.map((one) => one.rule), rule: undefined, times: 1 };
      runs.push(run);
    } else if (before === undefined) {
      run = open.get(rule);
      if (run === undefined) {
        run = { keys: [], all: undefined, rule, times: 1 };
        open.set(rule, run);
        runs.push(run);
      }
      run.keys.push(redisKey);
    } else if (before.rule === rule && before.keys.length === 1) {
      before.times++;
      if (open.get(rule) === before) open.delete(rule);
      continue;
    } else {
      run = { keys: [redisKey], all: undefined, rule, times: 1 };
      runs.push(run);
    }
    for (const one of step) last.set(one.redisKey, run);
  }
  return runs;
}

/** What a key held: a state, nothing, or something that is not a state (what it is instead). */
export type Before = State | null | string;

export interface Reply {
  /** The clock by which the script decided, ms. */
  readonly now: number;
  /** How many requests it granted. */
  readonly granted: number;
  /** What each of the script's keys held before, in their order. */
  readonly before: readonly Before[];
}

const WRONG: Readonly<Record<string, string>> = {
  "2": "a state must be 16 bytes; the value under this key is not",
  "3": "a state must be two finite little-endian doubles; got one that is not finite",
  "4": "a state must be a string; the value under this key is of another type",
};
const wrong = (found: string): string => WRONG[found] ?? "the script's reply about this key cannot be read";

const LATE = /^late (\d+)$/;
const LATE_MAX_BYTES = 21;

/** The server's clock, ms, if the script did nothing because the deadline had passed. */
export function readLate(reply: unknown): number | undefined {
  // Its first byte, `l`, is that of hardly any other reply.
  const isLate = (reply as Uint8Array | null)?.[0] === 0x6c && isBytes(reply) && reply.length <= LATE_MAX_BYTES;
  const text = isLate ? String.fromCharCode(...reply) : reply;
  const found = typeof text === "string" ? LATE.exec(text) : null;
  return found === null ? undefined : Number(found[1]);
}

/** The server's reply to a command within a transaction. */
const QUEUED = "QUEUED";

/** Reads a reply about this many keys, or throws if it is not one. */
export function readReply(reply: unknown, keys: number): Reply {
  const read = typeof reply === "string" ? fromText(reply) : isBytes(reply) ? fromBytes(reply) : undefined;
  if (read === undefined || read.before.length !== keys || !Number.isFinite(read.now)) {
    const text = isBytes(reply) && reply.length === QUEUED.length ? String.fromCharCode(...reply) : reply;
    throw new TypeError(
      text === QUEUED
        ? "the connection is in a MULTI: give the store a connection of its own"
        : "the server's reply is not one of the script's",
    );
  }
  return read;
}

function fromBytes(bytes: Uint8Array): Reply | undefined {
  if (bytes.length < 16) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const before: Before[] = [];
  for (let at = 16; at < bytes.length; ) {
    const found = bytes[at++] as number;
    if (found === 0x31) {
      if (at + 16 > bytes.length) return undefined;
      before.push({ value: view.getFloat64(at, true), ts: view.getFloat64(at + 8, true) });
      at += 16;
    } else before.push(found === 0x30 ? null : wrong(String.fromCharCode(found)));
  }
  return { now: view.getFloat64(0, true), granted: view.getFloat64(8, true), before };
}

function fromText(text: string): Reply | undefined {
  const [head = "", ...keys] = text.split(";");
  const [now, granted] = head.split(" ");
  const before = keys.map((key): Before => {
    const [found = "", value, ts] = key.split(" ");
    if (found === "1") return { value: Number(value), ts: Number(ts) };
    return found === "0" ? null : wrong(found);
  });
  return { now: Number(now), granted: Number(granted), before };
}
