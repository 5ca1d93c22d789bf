/** Limits of one part: one key on the server each. */

import type { Decision, State } from "../../decision.ts";
import type { Limit } from "../../limit.ts";
import type { Call as StoreCall } from "../../store.ts";
import { never, recall } from "./recall.ts";
import type { Server } from "./server.ts";

/** One atomic step; see the `Store` interface. */
export function decide(server: Server, call: StoreCall, now: number | undefined): Promise<Decision> {
  const { op, limit, key, count, reserve } = call;
  const start = limit.start(key);
  const place = server.keyOf(limit, key);
  if (op === "take" || op === "check") {
    const known = never(server, call, now) ?? recall(server, place, call, start, now);
    if (known !== undefined) return Promise.resolve(known);
  }
  const ask = () => server.decide(place, { op, limit, key, start, count, reserve }, now);
  return op === "give" ? server.bringsBack(place, ask) : ask();
}

/** Forgets the limit. */
export async function reset(server: Server, limit: Limit, key: string | undefined): Promise<void> {
  const place = server.keyOf(limit, key);
  const asked = { op: "reset", limit, key, start: 0, count: 0, reserve: false } as const;
  await server.bringsBack(place, () => server.ask(place, asked, undefined));
}

/** The two numbers at `now`. */
export async function getValue(
  server: Server,
  limit: Limit,
  key: string | undefined,
  now: number | undefined,
): Promise<State> {
  const start = limit.start(key);
  const place = server.keyOf(limit, key);
  const asked = await server.ask(place, { op: "check", limit, key, start, count: 0, reserve: false }, now);
  return limit.project(asked.before as State | null, asked.now, start);
}
