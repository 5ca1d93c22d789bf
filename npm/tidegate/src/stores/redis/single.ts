/** Limits of one part: one key on the server each. */

import type { Decision, State } from "../../limit/decision.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Deadline, Call as StoreCall } from "../contract.ts";
import { never, recall } from "./recall.ts";
import type { Server } from "./server.ts";

/** One atomic step; see the `Store` interface. */
export function decide(
  server: Server,
  call: StoreCall,
  now: number | undefined,
  deadline: Deadline,
): Promise<Decision> {
  const { op, limit, key, count, reserve } = call;
  const start = limit.start(key);
  const place = server.keyOf(limit, key);
  if (op === "take" || op === "check") {
    const known = never(server, call, now) ?? recall(server, place, call, start, now);
    if (known !== undefined) return Promise.resolve(known);
  }
  const ask = () => server.decide(place, { op, limit, key, start, count, reserve }, now, deadline);
  return op === "give" ? server.bringsBack(place, ask) : ask();
}

/** Forgets the limit. */
export async function reset(server: Server, limit: Limit, key: string | undefined, deadline: Deadline): Promise<void> {
  const place = server.keyOf(limit, key);
  const asked = { op: "reset", limit, key, start: 0, count: 0, reserve: false } as const;
  await server.bringsBack(place, () => server.ask(place, asked, undefined, deadline));
}

/** The two numbers at `now`. */
export async function getValue(
  server: Server,
  limit: Limit,
  key: string | undefined,
  now: number | undefined,
  deadline: Deadline,
): Promise<State> {
  const start = limit.start(key);
  const place = server.keyOf(limit, key);
  const look = { op: "check", limit, key, start, count: 0, reserve: false } as const;
  const asked = await server.ask(place, look, now, deadline);
  return limit.project(asked.before as State | null, asked.now, start);
}
