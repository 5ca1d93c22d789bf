/**
 * Limits of several shards that live apart: on several servers of a cluster, in several Durable Objects.
 *
 * Every step on a shard is an ordinary one under the shard's own rule (rate, capacity and reserve divided by the number
 * of shards), atomic where the shard lives. So whatever interleaves, no shard grants more than its rule, and all of them
 * together no more than the limit: nothing is minted. A request that one shard cannot grant takes parts from several;
 * where one of them has been taken by others meanwhile, the parts that were taken go on counting and the rest is looked
 * for anew, and where there is no more, they are given back: `give` after `take` leaves what would be there without
 * either, and what a shard has no room for goes to another. Were this process to die in between, the parts stay taken: the limit is then too strict until they refill,
 * never too generous. Parts add up to the count within n x ulp(capacity).
 */

import type { Decision, State } from "../limit/decision.ts";
import type { Limit } from "../limit/limit.ts";
import type { AsyncStore, Call, Deadline, Op } from "./contract.ts";
import { drain, fill, type Part } from "./level.ts";

/** What came of a step on one shard. */
export interface Step {
  /** What the shard held when the step came to its turn. */
  readonly before: State | null;
  /** By the shard's own rule, but for the limit's names; absent where nothing was decided. */
  readonly decision: Decision | undefined;
  /** The clock that it was answered by, ms. */
  readonly now: number;
}

/** What is asked of one shard. */
export interface Ask {
  readonly op: Op;
  readonly limit: Limit;
  readonly key: string | undefined;
  readonly shard: number;
  readonly start: number;
  readonly count: number;
  readonly reserve: boolean;
}

/** Where the shards live. */
export interface Shards {
  /** One atomic step on one shard. */
  step(ask: Ask, now: number | undefined): Promise<Step>;
  /** Begins a look at all shards; what it returns is told where they deny together. */
  look?(limit: Limit, key: string | undefined): (states: readonly (State | null)[]) => void;
}

/** How often what others took first is looked for anew: each time somebody else was granted. */
const ROUNDS = 16;

/** All shards as they are, each by its own clock, and the latest of these clocks. */
export async function read(
  server: Shards,
  limit: Limit,
  key: string | undefined,
  start: number,
  now: number | undefined,
): Promise<{ states: (State | null)[]; now: number }> {
  const shards = Array.from({ length: limit.policy.shards }, (_, shard) => shard);
  const look = { limit, key, reserve: false };
  const steps = await Promise.all(shards.map((shard) => step(server, look, "check", shard, start, 0, now)));
  return {
    states: steps.map(({ before }) => before),
    now: steps.reduce((latest, one) => Math.max(latest, one.now), 0),
  };
}

/** A store some of whose limits have shards that live apart. */
export interface Apart {
  /** Whether the shards of this limit and key live apart. */
  isApart(limit: Limit, key: string | undefined): boolean;
  /** One atomic step on one shard. */
  step(call: Call, shard: number, now: number | undefined, deadline: Deadline): Promise<Step>;
  /** Deletes one shard. */
  reset(limit: Limit, key: string | undefined, shard: number, deadline: Deadline): Promise<void>;
}

/** The operations of `store`, with its limits spread over their shards where these live apart. */
export function spreading(store: AsyncStore, apart: Apart): AsyncStore {
  const shards = (deadline: Deadline): Shards => ({
    step: ({ shard, ...call }, now) => apart.step(call, shard, now, deadline),
  });
  return {
    ...store,
    async decide(call, now, deadline) {
      const { limit, key } = call;
      if (!apart.isApart(limit, key)) return store.decide(call, now, deadline);
      return limit.never(call, now ?? Date.now()) ?? decide(shards(deadline), call, limit.start(key), now);
    },
    async reset(limit, key, deadline) {
      if (!apart.isApart(limit, key)) return store.reset(limit, key, deadline);
      const all = Array.from({ length: limit.policy.shards }, (_, shard) => apart.reset(limit, key, shard, deadline));
      await Promise.all(all);
    },
    async getValue(limit, key, now, deadline) {
      if (!apart.isApart(limit, key)) return store.getValue(limit, key, now, deadline);
      const seen = await read(shards(deadline), limit, key, limit.start(key), now);
      return limit.sum(seen.states, seen.now, limit.start(key));
    },
  };
}

/** A step, and what was asked. */
type Asked = Step & { readonly ask: Ask };

/** What the shard holds after the step. */
function stateAfter({ ask, before, now }: Asked): State | null {
  return ask.limit.evaluate(before, ask, now, { start: ask.start, shard: true }).state;
}

async function step(
  server: Shards,
  of: Pick<Call, "limit" | "key" | "reserve">,
  op: Op,
  shard: number,
  start: number,
  count: number,
  now: number | undefined,
): Promise<Asked> {
  const { limit, key, reserve } = of;
  const ask = { op, limit, key, shard, start, count, reserve };
  return { ...(await server.step(ask, now)), ask };
}

/** One step on a limit whose shards live apart. */
export function decide(server: Shards, call: Call, start: number, now: number | undefined): Promise<Decision> {
  if (call.op === "charge") return charge(server, call, start, now);
  if (call.op === "give") return give(server, call, start, now);
  return take(server, call, start, now);
}

async function take(server: Shards, call: Call, start: number, now: number | undefined): Promise<Decision> {
  const { limit, op, count } = call;
  const [a, b] = limit.pick(Math.random());
  const looks = await Promise.all([a, b].map((shard) => step(server, call, "check", shard, start, 0, now)));
  const [one, two] = looks as [Asked, Asked];
  const seen = [one.before, two.before] as const;
  const look = limit.better(seen, call, Math.max(one.now, two.now), start);
  if (look.decision.ok) {
    if (op === "check" || count === 0) return look.decision;
    const taken = await step(server, { ...call, reserve: false }, "take", look.which === 0 ? a : b, start, count, now);
    // By what the shard held at last; the other one as it was a moment ago.
    const last: [State | null, State | null] = [...seen];
    last[look.which] = taken.before;
    if (taken.decision?.ok === true) {
      const told = limit.better(last, call, taken.now, start);
      return told.decision.ok ? told.decision : look.decision;
    }
  }
  return fromPool(server, call, start, now);
}

async function fromPool(server: Shards, call: Call, start: number, now: number | undefined): Promise<Decision> {
  const { limit, op, count, reserve } = call;
  const hair = hairOf(call);
  const floor = reserve ? -(limit.policy.maxReserved ?? Number.POSITIVE_INFINITY) / limit.policy.shards : 0;
  const taken = new Map<number, number>();
  let left = count;
  for (let round = 1; ; round++) {
    const denied = server.look?.(limit, call.key);
    const seen = await read(server, limit, call.key, start, now);
    let { decision } = limit.pool(seen.states, { op: "check", count: left, reserve }, seen.now, start);
    // Parts that were taken before may have left the sum a hair short of what is there.
    if (!decision.ok && left > hair)
      decision = limit.pool(seen.states, { op: "check", count: left - hair, reserve }, seen.now, start).decision;
    if (op === "check" || (decision.ok && count === 0)) return decision;
    if (!decision.ok && taken.size === 0) {
      denied?.(seen.states);
      return decision;
    }
    if (!decision.ok || round > ROUNDS) {
      await bring(server, call, [...taken], start, now);
      // Others keep taking: the tokens are there by the numbers, and it is worth asking at once.
      if (round > ROUNDS) return { ...decision, ok: false, reserved: false, retryAt: seen.now + 1, retryAfter: 1 };
      taken.clear();
      left = count;
      continue;
    }
    const values = seen.states.map((state) => tokens(limit, state, seen.now, start));
    const parts = drain(values, left, floor);
    const settled = await Promise.all(
      parts.map(([shard, part]) => step(server, call, "take", shard, start, part, now)),
    );
    const after = [...seen.states];
    for (const [i, [shard, part]] of parts.entries()) {
      const done = settled[i] as Asked;
      after[shard] = stateAfter(done);
      if (done.decision?.ok !== true) continue;
      taken.set(shard, (taken.get(shard) ?? 0) + part);
      left -= part;
    }
    if (left <= hair) {
      const told = limit.pool(after, { op: "check", count: 0, reserve: true }, seen.now, start).decision;
      return { ...told, ok: true, reserved: told.value < 0, reason: undefined };
    }
  }
}

/**
 * Gives tokens to shards, and what one of them has no room for (others gave to it meanwhile) to those that have, until
 * it is all given or all are full. Returns the shards as they are then.
 */
async function bring(
  server: Shards,
  call: Call,
  parts: readonly Part[],
  start: number,
  now: number | undefined,
): Promise<{ states: (State | null)[]; now: number }> {
  const { limit } = call;
  const hair = hairOf(call);
  for (let left = parts, round = 1; ; round++) {
    const settled = await Promise.all(left.map(([shard, part]) => step(server, call, "give", shard, start, part, now)));
    const over = left.reduce((sum, [, part], i) => sum + part - gained(settled[i] as Asked, start), 0);
    const seen = await read(server, limit, call.key, start, now);
    const values = seen.states.map((state) => tokens(limit, state, seen.now, start));
    left = over > hair ? fill(values, over, limit.policy.capacity / limit.policy.shards) : [];
    if (left.length === 0 || round === ROUNDS) return seen;
  }
}

/** How many tokens a shard took in. */
function gained({ ask, before, decision, now }: Asked, start: number): number {
  return before === null ? 0 : (decision as Decision).value - tokens(ask.limit, before, now, start);
}

/** What rounding may leave over of a count that moves in parts. */
const hairOf = ({ limit: { policy }, count }: Call): number =>
  policy.shards * Number.EPSILON * Math.max(policy.capacity, count);

/** Evenly: a charge never asks what is there. */
async function charge(server: Shards, call: Call, start: number, now: number | undefined): Promise<Decision> {
  const { limit, count } = call;
  const shards = Array.from({ length: limit.policy.shards }, (_, shard) => shard);
  const part = count / shards.length;
  const settled = await Promise.all(shards.map((shard) => step(server, call, "charge", shard, start, part, now)));
  return told(limit, settled.map(stateAfter), settled, start);
}

/** To the emptiest first, so that no shard overflows while another lacks. */
async function give(server: Shards, call: Call, start: number, now: number | undefined): Promise<Decision> {
  const { limit, count } = call;
  const seen = await read(server, limit, call.key, start, now);
  const values = seen.states.map((state) => tokens(limit, state, seen.now, start));
  const parts = fill(values, count, limit.policy.capacity / limit.policy.shards);
  const after = parts.length === 0 ? seen : await bring(server, call, parts, start, now);
  return limit.pool(after.states, { op: "give", count: 0, reserve: false }, after.now, start).decision;
}

function tokens(limit: Limit, state: State | null, now: number, start: number): number {
  const look = { op: "charge", count: 0, reserve: false } as const;
  return limit.evaluate(state, look, now, { start, shard: true }).decision.value;
}

function told(limit: Limit, after: (State | null)[], settled: readonly Asked[], start: number): Decision {
  const latest = settled.reduce((time, one) => Math.max(time, one.now), 0);
  return limit.pool(after, { op: "charge", count: 0, reserve: false }, latest, start).decision;
}
