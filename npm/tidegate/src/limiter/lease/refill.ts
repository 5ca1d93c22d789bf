/** Refills of a lease, one at a time: for all waiting requests, and some ahead. */
import type { Decision } from "../../limit/decision.ts";
import { isInputError } from "../../limit/errors.ts";
import type { ResilientStore } from "../resilience.ts";
import type { Call, Op } from "../../stores/contract.ts";
import type { Lease, Turn, WaitingRequest } from "./lease.ts";

/** The store, the limiter's clock, and the host's `waitUntil`. */
export interface Lender {
  readonly resilient: ResilientStore;
  readonly time: () => number | undefined;
  readonly during: (work: Promise<unknown>) => void;
}

/** ms without taking ahead after a failure of the store. */
const QUIET = 100;
/** ms after which a round trip counts as lost, as where a Worker's request was cut off. */
const LOST = 10_000;
/**
 * Round trips lost to other processes, after which only the first waiting request's tokens are requested; and after which
 * the balance returns to the store, which decides on the request itself.
 */
const FOR_ALL = 2;
const FOR_ONE = 4;

/** Starts a refill, unless one is in flight. */
export function refill(lender: Lender, lease: Lease): void {
  const now = Date.now();
  if (lease.refilling !== undefined && now - lease.refillingSince < LOST) return;
  if (lease.waiting.size === 0 && now < lease.quietUntil) return;
  lease.refillingSince = now;
  const refilling = run(lender, lease).finally(() => {
    if (lease.refilling !== refilling) return;
    lease.refilling = undefined;
    if (lease.waiting.size > 0) refill(lender, lease);
  });
  lease.refilling = refilling;
  lender.during(refilling);
}

/** Waits for a refill, or for the deadline. */
export function wait(lender: Lender, lease: Lease, count: number): Promise<Decision> {
  return new Promise((resolve, reject) => {
    const open = lease.turn;
    const turn = open === undefined || open.waiting === 0 ? begin(lender, lease) : open;
    lease.waiting.add({ count, turn, resolve, reject });
    refill(lender, lease);
  });
}

/** Starts the deadline of a turn's requests. */
function begin(lender: Lender, lease: Lease): Turn {
  const late = (error: unknown): void => {
    const ofTurn = [...lease.waiting].filter((request) => request.turn === turn);
    decideWithout(lender, lease, error, ofTurn);
  };
  const turn: Turn = { waiting: 0, cancel: lender.resilient.atDeadline("take", lease, late) };
  lease.turn = turn;
  void Promise.resolve().then(() => {
    if (lease.turn === turn) lease.turn = undefined;
  });
  return turn;
}

/** Decides on these waiting requests without the store. */
function decideWithout({ resilient, time }: Lender, lease: Lease, error: unknown, waiting: WaitingRequest[]): void {
  const { limit, key } = lease;
  for (const request of waiting) {
    lease.waiting.delete(request);
    const { count, resolve, reject } = request;
    try {
      if (isInputError(error)) throw error;
      const passed = time();
      const call: Call = { op: "take", limit, key, count, reserve: false };
      resolve(lease.spend(count, passed) ?? resilient.without(call, passed, error));
    } catch (mistake) {
      reject(mistake);
    }
  }
}

async function run(lender: Lender, lease: Lease): Promise<void> {
  // Calls of the same turn are included.
  await undefined;
  try {
    let first = lease.waiting.first;
    for (let tries = 1; ; tries++) {
      const passed = lender.time();
      const count = lease.size(lease.now(passed), tries > FOR_ALL);
      if (first === undefined && count === 0) return lease.rest();
      if (tries <= FOR_ONE) answer(lease, (await put(lender, lease, count === 0 ? "check" : "take", count, count)).now);
      else await straight(lender, lease);
      if (lease.waiting.size === 0) return;
      if (first !== lease.waiting.first) tries = 0;
      first = lease.waiting.first;
    }
  } catch (error) {
    lease.quietUntil = Date.now() + QUIET;
    decideWithout(lender, lease, error, [...lease.waiting]);
  }
}

/** One step at the store, which lends that many tokens where it is granted. */
async function put(lender: Lender, lease: Lease, op: Op, count: number, lent: number): Promise<Decision> {
  const { limit, key } = lease;
  const mark = lease.mark();
  lease.refillingSince = mark.wall;
  const decision = await lender.resilient.attempt({ op, limit, key, count, reserve: false }, lender.time());
  lease.learn(decision, decision.ok ? lent : 0, mark);
  return decision;
}

/** Resolves waiting requests in order, as far as the balance and the store's state settle them. */
function answer(lease: Lease, now: number): void {
  for (const request of lease.waiting) {
    const decision = lease.spend(request.count, now);
    if (decision === undefined) return;
    lease.waiting.delete(request);
    request.resolve(decision);
  }
}

/** Lets the store decide on the first waiting request, after the balance has returned to it. */
async function straight(lender: Lender, lease: Lease): Promise<void> {
  const back = lease.empty(lease.now(lender.time()));
  if (back > 0) await put(lender, lease, "give", back, 0);
  const first = lease.waiting.first;
  if (first === undefined) return;
  const decision = await put(lender, lease, "take", first.count, 0);
  lease.waiting.delete(first);
  first.resolve(decision);
}
