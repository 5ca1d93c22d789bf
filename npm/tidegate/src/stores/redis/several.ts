/** Several limits, all or nothing, in one script call. */

import type { AllDecision, Decision } from "../../limit/decision.ts";
import { InputError } from "../../limit/errors.ts";
import type { Deadline, Call as StoreCall } from "../contract.ts";
import { shardMember } from "./sharded.ts";
import type { Server } from "./server.ts";
import { Spec } from "./spec.ts";
import type { Member } from "./unit.ts";

/** One atomic step on several limits; see the `Store` interface. */
export async function decideAll(
  server: Server,
  calls: readonly StoreCall[],
  now: number | undefined,
  deadline: Deadline,
): Promise<AllDecision> {
  if (calls.length === 0) return { ok: true, retryAt: undefined, retryAfter: undefined, decisions: [] };
  const places = calls.map(({ limit, key }) => server.keyOf(limit, key, limit.policy.shards === 1 ? undefined : 0));
  const apart = calls.some(({ limit, key }) => limit.policy.shards > 1 && !server.shardsTogether(limit, key));
  if (apart || !server.together(places)) {
    const told = calls.map(({ limit, key }) => limit.identity(key)).join(", ");
    throw new InputError("requests", "about limits of one hash slot: give `redis` a `tag` that they share", told, told);
  }
  // Two requests on one state ask for their sum, of what is stored, and look at the same shards.
  const sums = new Map<string, { count: number; random: number }>();
  const unit = await server.askUnit(places[0] as string, now, deadline, (line) =>
    calls.map((call, i): Member => {
      const { op, limit, key, reserve } = call;
      const place = places[i] as string;
      const start = limit.start(key);
      const before = sums.get(place);
      const count = (before?.count ?? 0) + call.count;
      const random = before?.random ?? Math.random();
      sums.set(place, { count, random });
      if (limit.policy.shards > 1) {
        const pair = limit.pick(random);
        return shardMember(server, { op, limit, key, start, count, reserve, ask: "both", pair }, line);
      }
      const whole = new Spec(op, count, reserve, false, start, limit.policy);
      const lines = [line(place, { limit, key })];
      return { ask: "key", limit, place, whole, shard: undefined, lines, pair: undefined };
    }),
  );
  return together(unit.decisions, unit.now);
}

/** The whole of several decisions: its time is the latest of those that settle it, the denials where there are any. */
function together(decisions: Decision[], now: number): AllDecision {
  const ok = decisions.every((decision) => decision.ok);
  const times = decisions.filter((decision) => decision.ok === ok).map((decision) => decision.retryAt);
  const known = times.filter((time) => time !== undefined);
  const hopeless = !ok && known.length < times.length;
  const retryAt = hopeless || known.length === 0 ? undefined : Math.max(...known);
  return { ok, retryAt, retryAfter: retryAt === undefined ? undefined : retryAt - now, decisions };
}
