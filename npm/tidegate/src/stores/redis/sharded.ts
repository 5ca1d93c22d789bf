/** Limits of several shards that one script call can be about: on one server, or under one tag. */

import type { Decision, State } from "../../limit/decision.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Deadline, Call as StoreCall } from "../contract.ts";
import type { Line, Owner } from "./line.ts";
import { clockFor, never } from "./recall.ts";
import type { Server } from "./server.ts";
import { Spec, type SpecOp } from "./spec.ts";
import * as spread from "../spread.ts";
import type { Member, Unit } from "./unit.ts";

/** Up to here all shards are asked at once, the pair first; beyond, the pool is asked only where the pair denies. */
const ALL_AT_ONCE = 16;

/** What a unit's member is to ask of which shards. */
export interface ShardAsk {
  readonly op: SpecOp;
  readonly limit: Limit;
  readonly key: string | undefined;
  readonly start: number;
  readonly count: number;
  readonly reserve: boolean;
  readonly ask: "pair" | "pool" | "both";
  readonly pair: readonly [number, number] | undefined;
}

type LineOf = (place: string, of: Owner) => Line;

/** A unit's member on a sharded limit. */
export function shardMember(server: Server, asked: ShardAsk, line: LineOf): Member {
  const { op, limit, key, start, count, reserve, ask, pair } = asked;
  const at = (shard: number) => line(server.keyOf(limit, key, shard), { limit, key, shard });
  const two = pair === undefined ? undefined : ([at(pair[0]), at(pair[1])] as const);
  return {
    ask,
    limit,
    place: server.keyOf(limit, key),
    whole: new Spec(op, count, reserve, false, start, limit.policy),
    // One shard lends nothing; what it does not hold is asked of all.
    shard: new Spec(op, count, false, true, start, limit.policy),
    lines: ask === "pair" && two !== undefined ? two : Array.from({ length: limit.policy.shards }, (_, i) => at(i)),
    pair: two,
  };
}

/** The shards of a cluster, each on the server of its slot. */
function apart(server: Server, now: number | undefined, deadline: Deadline): spread.Shards {
  return {
    step: async (ask, at) => {
      // What was taken in parts is brought back even where nobody waits for the answer any more.
      const until = ask.op === "give" ? undefined : deadline;
      const place = server.keyOf(ask.limit, ask.key, ask.shard);
      const { before, decision, now } = await server.ask(place, ask, at, until);
      return { before: before as State | null, decision, now };
    },
    look: (limit, key) => {
      const sentAt = performance.now();
      return (states) => server.rememberShards(limit, key, states, now !== undefined, sentAt);
    },
  };
}

function askShards(server: Server, asked: ShardAsk, now: number | undefined, deadline: Deadline): Promise<Unit> {
  const first = server.keyOf(asked.limit, asked.key, asked.pair?.[0] ?? 0);
  return server.askUnit(first, now, deadline, (line) => [shardMember(server, asked, line)]);
}

/** One atomic step; see the `Store` interface. */
export async function decide(
  server: Server,
  call: StoreCall,
  now: number | undefined,
  deadline: Deadline,
): Promise<Decision> {
  const { op, limit, key, count, reserve } = call;
  const start = limit.start(key);
  const place = server.keyOf(limit, key);
  const taking = op === "take" || op === "check";
  if (taking) {
    const known = never(server, call, now) ?? recall(server, place, call, start, now);
    if (known !== undefined) return known;
  }
  if (!server.shardsTogether(limit, key)) {
    const asked = () => spread.decide(apart(server, now, deadline), call, start, now);
    return op === "give" ? server.bringsBack(place, asked) : asked();
  }
  const asked = { op, limit, key, start, count, reserve };
  const pool = async () => first(await askShards(server, { ...asked, ask: "pool", pair: undefined }, now, deadline));
  if (op === "give") return server.bringsBack(place, pool);
  if (!taking) return pool();
  const pair = limit.pick(Math.random());
  const ask = limit.policy.shards <= ALL_AT_ONCE ? "both" : "pair";
  const decision = first(await askShards(server, { ...asked, ask, pair }, now, deadline));
  return decision.ok || ask === "both" ? decision : pool();
}

const first = (unit: Unit): Decision => unit.decisions[0] as Decision;

function recall(server: Server, place: string, call: StoreCall, start: number, now: number | undefined) {
  const denial = server.denials.get(place);
  if (denial === undefined || denial.states.length !== call.limit.policy.shards) return undefined;
  const at = clockFor(server, denial.passed, now);
  if (at === undefined) return undefined;
  const { decision } = call.limit.pool(denial.states, { ...call, op: "check" }, at, start);
  if (!decision.ok) return decision;
  server.denials.forget(place);
  return undefined;
}

/** Forgets the limit, every shard of it. */
export async function reset(server: Server, limit: Limit, key: string | undefined, deadline: Deadline): Promise<void> {
  const place = server.keyOf(limit, key);
  await server.bringsBack(place, () => {
    const shards = Array.from({ length: limit.policy.shards }, (_, shard) => shard);
    const asked = { op: "reset", limit, key, start: 0, count: 0, reserve: false } as const;
    return Promise.all(
      shards.map((shard) => server.ask(server.keyOf(limit, key, shard), { ...asked, shard }, undefined, deadline)),
    );
  });
}

/** The two numbers of all shards at `now`. */
export async function getValue(
  server: Server,
  limit: Limit,
  key: string | undefined,
  now: number | undefined,
  deadline: Deadline,
): Promise<State> {
  const start = limit.start(key);
  if (!server.shardsTogether(limit, key)) {
    const read = await spread.read(apart(server, now, deadline), limit, key, start, now);
    return limit.sum(read.states, read.now, start);
  }
  const asked = { op: "check", limit, key, start, count: 0, reserve: false, ask: "pool", pair: undefined } as const;
  const unit = await askShards(server, asked, now, deadline);
  return limit.sum(unit.before[0] ?? [], unit.now, start);
}
