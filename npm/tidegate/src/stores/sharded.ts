/**
 * Limits whose shards are separate: on several servers of a cluster, or in several Durable Objects.
 *
 * Every step is an ordinary atomic step on one shard, by the shard's own policy: rate, capacity and reserve divided by the
 * number of shards. However steps interleave, the shards together never grant more than the limit.
 * A request that no single shard can grant takes parts from several. If other callers have taken some of these tokens
 * meanwhile, it looks for the rest again. If there are no more, or a step fails, it gives the parts back, even after the call's
 * deadline. A process that ends in between leaves them taken: the limit is then too strict until they refill, and never too
 * generous. Parts add up to the count within `shards` x ulp(capacity).
 */

import type { Decision, State } from "../limit/decision.ts";
import { LOOK } from "../limit/evaluator.ts";
import type { Limit } from "../limit/limit.ts";
import { better, pick, pool, sum } from "../limit/shards.ts";
import { overdueTimers } from "../limit/monotonic.ts";
import type { Call, Deadline, Key, Now, Op } from "./contract.ts";

export interface Step {
  readonly before: State | null;
  /** By the shard's own rule. */
  readonly decision: Decision;
  /** The clock that decided, ms. */
  readonly now: number;
}

/** The shards of a store. */
export interface Shards {
  /** One atomic step on one shard. Without a deadline it runs however late. */
  step(call: Call, shard: number, now: Now, deadline: Deadline): Promise<Step>;
  /** Called if all shards together deny, with their states, which were read after `sentAt` (`performance.now()`, ms). */
  denied?(call: Call, states: readonly (State | null)[], now: Now, sentAt: number): void;
}

export const shardsOf = ({ policy }: Limit): number[] => Array.from({ length: policy.shards }, (_, shard) => shard);

/**
 * One call on a limit whose shards are separate. `random`, from 0 to below 1, picks the two shards that it tries first.
 */
export function decide(
  shards: Shards,
  call: Call,
  now: Now,
  deadline: Deadline,
  random: number = Math.random(),
): Promise<Decision> {
  return operationsOf(shards, call, now, deadline)[call.op](random);
}

/** The two numbers of such a limit. */
export async function getValue(shards: Shards, limit: Limit, key: Key, now: Now, deadline: Deadline): Promise<State> {
  const seen = await operationsOf(shards, { ...LOOK, limit, key }, now, deadline).read();
  return sum(limit, seen.states, seen.now, limit.start(key));
}

/** All shards, each by its own clock, and the latest of these clocks. */
interface Seen {
  readonly states: (State | null)[];
  readonly now: number;
}

/** How often a call looks for tokens again, or gives them back again: each time another call was granted. */
const ROUNDS = 16;

/** What the call may be, and the steps of which all of these consist. */
function operationsOf(shards: Shards, call: Call, now: Now, deadline: Deadline) {
  const { limit, key, op, count, reserve } = call;
  const { capacity, maxReserved = Infinity } = limit.policy;
  const start = limit.start(key);
  const ofShard = { start, shard: true };
  /** What rounding may leave over of a count that moves in parts. */
  const tolerance = toleranceOf(limit, count);

  async function step(op: Op, shard: number, count: number, reserve = false): Promise<Step> {
    await overdueTimers(deadline?.at ?? Infinity);
    return shards.step({ ...call, op, count, reserve }, shard, now, deadline);
  }

  const look = (some: readonly number[]): Promise<Step[]> => Promise.all(some.map((shard) => step("check", shard, 0)));

  async function read(): Promise<Seen> {
    const steps = await look(shardsOf(limit));
    return { states: steps.map(({ before }) => before), now: latest(steps) };
  }

  const after = ({ before, now }: Step, op: Op, count: number): State | null =>
    limit.evaluate(before, { op, count, reserve }, now, ofShard).state;

  /** One step on every shard; returns the shards afterwards. */
  async function onEach(op: Op, count: number): Promise<Seen> {
    const steps = await Promise.all(shardsOf(limit).map((shard) => step(op, shard, count)));
    return { states: steps.map((one) => after(one, op, count)), now: latest(steps) };
  }

  const tokens = (state: State | null, now: number): number => limit.evaluate(state, LOOK, now, ofShard).decision.value;
  const values = ({ states, now }: Seen): number[] => states.map((state) => tokens(state, now));
  /** How to divide tokens that are given over the shards. */
  const filled = (seen: Seen, count: number): Part[] => fill(values(seen), count, capacity / limit.policy.shards);
  /** How many tokens a shard took in: none if it was full. */
  const gained = ({ before, decision, now }: Step): number =>
    before === null ? 0 : decision.value - tokens(before, now);

  const pooled = ({ states, now }: Seen, op: Op, count: number, reserve = false): Decision =>
    pool(limit, states, { op, count, reserve }, now, start).decision;

  /** From the better of two shards; if it has too little, from all. */
  async function take(random: number): Promise<Decision> {
    const pair = pick(limit, random);
    const looks = await look(pair);
    const seen = looks.map(({ before }) => before) as [State | null, State | null];
    const found = better(limit, seen, call, latest(looks), start);
    if (found.decision.ok) {
      if (op === "check" || count === 0) return found.decision;
      const taken = await step("take", pair[found.which], count);
      if (taken.decision.ok) {
        seen[found.which] = taken.before;
        const { decision } = better(limit, seen, call, taken.now, start);
        return decision.ok ? decision : found.decision;
      }
    }
    const parts = new Map<number, number>();
    try {
      return await takeParts(parts);
    } catch (error) {
      await giveParts([...parts]).catch(() => {});
      throw error;
    }
  }

  /** Takes from all shards, in rounds; `taken` is what it has so far taken from each. */
  async function takeParts(taken: Map<number, number>): Promise<Decision> {
    let left = count;
    for (let round = 1; ; round++) {
      const sentAt = performance.now();
      const seen = await read();
      const decision = together(limit, seen.states, { count: left, reserve }, seen.now, start, tolerance);
      if (op === "check" || (decision.ok && count === 0)) return decision;
      if (!decision.ok && taken.size === 0) {
        shards.denied?.(call, seen.states, now, sentAt);
        return decision;
      }
      if (!decision.ok || round > ROUNDS) {
        const parts = [...taken];
        // First, so that parts that fail half way are not given back twice.
        taken.clear();
        await giveParts(parts);
        // Other callers keep taking: the next attempt may succeed.
        if (round > ROUNDS) return { ...decision, ok: false, reserved: false, retryAt: seen.now + 1, retryAfter: 1 };
        left = count;
        continue;
      }
      left = await takeRound(seen, left, taken);
      if (left <= tolerance) {
        const after = pooled(seen, "check", 0, true);
        return { ...after, ok: true, reserved: after.value < 0, reason: undefined };
      }
    }
  }

  /**
   * Takes `left` from the shards in parts, by what they were seen to hold, and adds what they granted to `taken` and to
   * `seen`. Returns what is still left.
   */
  async function takeRound(seen: Seen, left: number, taken: Map<number, number>): Promise<number> {
    const parts = drain(values(seen), left, reserve ? -maxReserved / limit.policy.shards : 0);
    const steps = await Promise.allSettled(parts.map(([shard, part]) => step("take", shard, part, reserve)));
    let rest = left;
    for (const [i, one] of steps.entries()) {
      const [shard, part] = parts[i] as Part;
      if (one.status === "rejected") continue;
      seen.states[shard] = after(one.value, "take", part);
      if (!one.value.decision.ok) continue;
      taken.set(shard, (taken.get(shard) ?? 0) + part);
      rest -= part;
    }
    const failed = steps.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return rest;
  }

  /**
   * Gives tokens to shards, even if the caller no longer waits. What one of them has no room for, as others gave to it meanwhile,
   * goes to those that have room. It ends when all is given, or all shards are full. Returns the shards afterwards.
   */
  async function giveParts(parts: readonly Part[]): Promise<Seen> {
    const patient = operationsOf(shards, call, now, undefined);
    for (let left = parts, round = 1; ; round++) {
      const steps = await Promise.all(left.map(([shard, part]) => patient.step("give", shard, part)));
      const over = left.reduce((sum, [, part], i) => sum + part - gained(steps[i] as Step), 0);
      const seen = await patient.read();
      left = over > tolerance ? filled(seen, over) : [];
      if (left.length === 0 || round === ROUNDS) return seen;
    }
  }

  return {
    step,
    read,
    take,
    check: take,
    /** Evenly: a charge does not depend on what is left. */
    charge: async () => pooled(await onEach("charge", count / limit.policy.shards), "charge", 0),
    /** Every shard. `retryAt` is when all together hold a token. */
    async block() {
      const decision = pooled(await onEach("block", count), "check", Math.min(1, capacity));
      return { ...decision, ok: true, reason: undefined };
    },
    /** To the emptiest first, so that no shard overflows while another has room. */
    async give() {
      const before = await read();
      const parts = filled(before, count);
      return pooled(parts.length === 0 ? before : await giveParts(parts), "give", 0);
    },
  };
}

const toleranceOf = ({ policy }: Limit, count: number): number =>
  policy.shards * Number.EPSILON * Math.max(policy.capacity, count);

/**
 * What all shards together decide on a count, by the clock `now`. Counts that were taken in parts may have left their sum
 * slightly short of it.
 */
export function together(
  limit: Limit,
  states: readonly (State | null)[],
  { count, reserve }: Pick<Call, "count" | "reserve">,
  now: number,
  start: number,
  tolerance: number = toleranceOf(limit, count),
): Decision {
  const check = (count: number): Decision => pool(limit, states, { op: "check", count, reserve }, now, start).decision;
  const decision = check(count);
  return decision.ok || count <= tolerance ? decision : check(count - tolerance);
}

const latest = (steps: readonly Step[]): number => Math.max(...steps.map(({ now }) => now));

type Part = readonly [shard: number, tokens: number];

/**
 * What each shard gives so that together they give `count`: the fullest first, down to one level. None is left below
 * `floor`. The parts add up to the count but for rounding.
 */
export function drain(values: readonly number[], count: number, floor: number): Part[] {
  const order = values.map((value, shard) => ({ value, shard })).sort((a, b) => b.value - a.value);
  let level = 0;
  let sum = 0;
  for (const [i, { value }] of order.entries()) {
    sum += value;
    level = (sum - count) / (i + 1);
    if (level >= (order[i + 1]?.value ?? -Infinity)) break;
  }
  const parts: Part[] = [];
  for (const { value, shard } of order) {
    let tokens = value - level;
    // Rounding must not take slightly more from a shard than it has.
    while (tokens > 0 && value - tokens < floor) tokens = Math.min(tokens, value - floor) * (1 - Number.EPSILON);
    if (tokens > 0) parts.push([shard, tokens]);
  }
  return parts;
}

/** What each shard gets so that together they get `count`: the emptiest first, up to one level, none above `capacity`. */
export function fill(values: readonly number[], count: number, capacity: number): Part[] {
  const lacks = values.map((value) => capacity - value);
  const missing = lacks.reduce((sum, lack) => sum + Math.max(lack, 0), 0);
  return drain(lacks, Math.min(count, missing), 0);
}
