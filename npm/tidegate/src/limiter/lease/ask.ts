/** The one round trip at a time that a lease has: for all who wait, and some ahead. */
import type { Decision } from "../../limit/decision.ts";
import { isInputError } from "../../limit/errors.ts";
import type { ResilientStore } from "../resilience.ts";
import type { Call, Op } from "../../stores/contract.ts";
import type { Lease } from "./lease.ts";
import type { Waiting } from "./waiting.ts";

/** The store, the clock that was passed in, and what keeps the host from ending before some work has. */
export interface Lender {
  readonly resilient: ResilientStore;
  readonly time: () => number | undefined;
  readonly during: (work: Promise<unknown>) => void;
}

/** ms for which nothing is taken ahead after the store failed. */
const QUIET = 100;
/** ms after which a round trip counts as lost with whoever began it, as where a Worker's request was cut off. */
const LOST = 10_000;
/** How often others may be quicker, until it is asked for no more than the first who waits lacks; and until nothing is
 * held back from the store while it decides. */
const FOR_ALL = 2;
const FOR_ONE = 4;

/** Begins to ask, unless somebody is at it. */
export function ask(lender: Lender, lease: Lease): void {
  const now = Date.now();
  if (lease.asking !== undefined && now - lease.askingSince < LOST) return;
  if (lease.waiting.length === 0 && now < lease.quietUntil) return;
  lease.askingSince = now;
  const asking = run(lender, lease).finally(() => {
    if (lease.asking !== asking) return;
    lease.asking = undefined;
    if (lease.waiting.length > 0) ask(lender, lease);
  });
  lease.asking = asking;
  lender.during(asking);
}

/**
 * Waits until the store has told, within the call's deadline. Each has a timer of its own: a Worker's request that
 * waits for nothing but another request is taken for hung.
 */
export async function wait(lender: Lender, lease: Lease, call: Call): Promise<Decision> {
  let waiting: Waiting | undefined;
  const answered = new Promise<Decision>((resolve, reject) => {
    waiting = { call, resolve, reject };
    lease.waiting.push(waiting);
  });
  ask(lender, lease);
  try {
    return await lender.resilient.within(call, answered);
  } catch (error) {
    lease.waiting.remove(waiting as Waiting);
    if (isInputError(error)) throw error;
    return without(lender, lease, call, error);
  }
}

async function run(lender: Lender, lease: Lease): Promise<void> {
  // Whoever asks in this turn comes along.
  await undefined;
  try {
    let first = lease.waiting.first;
    for (let tries = 1; ; tries++) {
      const passed = lender.time();
      const count = lease.size(lease.now(passed), tries > FOR_ALL);
      if (first === undefined && count === 0) return lease.rest();
      if (tries <= FOR_ONE) answer(lease, (await put(lender, lease, count === 0 ? "check" : "take", count)).now);
      else await straight(lender, lease);
      if (lease.waiting.length === 0) return;
      if (first !== lease.waiting.first) tries = 0;
      first = lease.waiting.first;
    }
  } catch (error) {
    lease.quietUntil = Date.now() + QUIET;
    fail(lease, error);
  }
}

/** One step at the store; where it takes, what it takes is in hand then. */
async function put(lender: Lender, lease: Lease, op: Op, count: number, lends = true): Promise<Decision> {
  const { limit, key } = lease;
  const mark = lease.mark();
  lease.askingSince = mark.wall;
  const decision = await lender.resilient.attempt({ op, limit, key, count, reserve: false }, lender.time());
  lease.told(decision, lends && op === "take" && decision.ok ? count : 0, mark);
  return decision;
}

/** Answers those who wait, in their order, as far as what the store told settles them. */
function answer(lease: Lease, now: number): void {
  for (let next = lease.waiting.first; next !== undefined; next = lease.waiting.first) {
    const decision = lease.spend(next.call.count, now);
    if (decision === undefined) return;
    lease.waiting.remove(next);
    next.resolve(decision);
  }
}

/** Lets the store decide on the first who waits, with all that is there in one place. */
async function straight(lender: Lender, lease: Lease): Promise<void> {
  const back = lease.empty(lease.now(lender.time()));
  if (back > 0) await put(lender, lease, "give", back);
  const first = lease.waiting.first;
  if (first === undefined) return;
  const decision = await put(lender, lease, "take", first.call.count, false);
  lease.waiting.remove(first);
  first.resolve(decision);
}

/** Nobody need wait any longer for a store that failed. */
function fail(lease: Lease, error: unknown): void {
  for (const { reject } of lease.waiting.clear()) reject(error);
}

/** As the limit's `onStoreError` says, unless there is enough in hand. */
function without(lender: Lender, lease: Lease, call: Call, error: unknown): Decision {
  const passed = lender.time();
  return lease.spend(call.count, passed) ?? lender.resilient.without(call, Math.floor(passed ?? Date.now()), error);
}
