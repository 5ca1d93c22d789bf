/** Limits whose shards are separate rows. In each function `start` is {@link Limit.start} of the key. */
import { doublesAt } from "../engine/algebra.ts";
import { decisionOf, refuse } from "../engine/answer.ts";
import { distributed } from "../engine/distributed.ts";
import { KINDS, WRITES } from "../engine/generated/wire.ts";
import { writePolicy } from "./config.ts";
import type { Decision, Operation, State } from "./decision.ts";
import { type Evaluation, type Evaluator, flagsOf, LOOK } from "./evaluator.ts";

/** Two distinct shards, from one uniform random number in [0, 1). */
export function pick({ policy }: Evaluator, random: number): [number, number] {
  const others = policy.shards - 1;
  const pairs = policy.shards * others;
  const pair = Math.min(Math.floor(random * pairs), pairs - 1);
  const first = Math.floor(pair / others);
  const second = pair % others;
  return [first, second >= first ? second + 1 : second];
}

/**
 * One call on the fuller of two shards: which one it is (0 or 1), the decision, and that shard's new state. The decision's
 * `value` is an estimate for the whole limit from the two. A single shard grants no reservation: after a denial here,
 * {@link pool} decides.
 */
export function better(
  limit: Evaluator,
  pair: readonly [State | null, State | null],
  call: Operation,
  now: number,
  start: number,
): Evaluation & { which: 0 | 1 } {
  const at = { start, shard: true };
  const [a, b] = [limit.evaluate(pair[0], LOOK, now, at).decision, limit.evaluate(pair[1], LOOK, now, at).decision];
  const which = b.value > a.value ? 1 : 0;
  const other = which === 1 ? a : b;
  const { decision, state } = limit.evaluate(pair[which], { ...call, reserve: false }, now, at);
  const value = (decision.value + other.value) * (limit.policy.shards / 2);
  const whole = {
    ...decision,
    value,
    ts: Math.max(decision.ts, other.ts),
    remaining: Math.max(Math.floor(value), 0),
    resetAt: Math.max(decision.resetAt, other.resetAt),
  };
  return { decision: whole, which, state };
}

/** One call on all shards' states as one pool: the decision, and all their new states if they are to be written. */
export function pool(
  { policy }: Evaluator,
  states: readonly (State | null)[],
  call: Operation,
  now: number,
  start: number,
): { decision: Decision; states: State[] | undefined } {
  const { length } = states;
  const algebra = distributed();
  const { wasm } = algebra;
  const place = doublesAt(wasm, wasm.pool_at(length), 2 * length);
  for (const [i, state] of states.entries()) {
    place[2 * i] = state === null ? Number.NaN : state.value;
    place[2 * i + 1] = state === null ? 0 : state.ts;
  }
  writePolicy(algebra.numbers, policy, start);
  const status = wasm.pool_decide(KINDS.indexOf(policy.kind), length, now, call.count, flagsOf(call));
  refuse(status, { count: call.count, for: call.count, now });
  const decision = decisionOf(status, algebra.numbers, policy, Math.floor(now));
  if ((status & WRITES) === 0) return { decision, states: undefined };
  const written = doublesAt(wasm, wasm.pool_at(length), 2 * length);
  return {
    decision,
    states: states.map((_, i) => ({ value: written[2 * i] as number, ts: written[2 * i + 1] as number })),
  };
}

/** The two numbers of all shards together. */
export function sum(limit: Evaluator, states: readonly (State | null)[], now: number, start: number): State {
  const { value, ts } = pool(limit, states, LOOK, now, start).decision;
  return { value, ts };
}

/**
 * How a store decides on limits whose shards are separate rows. A store without it has one row for each limit and key.
 */
export interface Sharding {
  pick(limit: Evaluator): [number, number];
  readonly better: typeof better;
  readonly pool: typeof pool;
  readonly sum: typeof sum;
}

/** `random` returns numbers from 0 to below 1, which pick two shards. */
export const shardingBy = (random: () => number): Sharding => ({
  pick: (limit) => pick(limit, random()),
  better,
  pool,
  sum,
});
