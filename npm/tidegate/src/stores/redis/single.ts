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
  const answer = server.decide(place, { op, limit, key, start, count, reserve }, now);
  if (op !== "give") return answer;
  server.denials.open(place);
  return answer.finally(() => server.denials.close(place, server.sent));
}

/** Forgets the limit. */
export async function reset(server: Server, limit: Limit, key: string | undefined): Promise<void> {
  const place = server.keyOf(limit, key);
  server.denials.open(place);
  try {
    await server.ask(place, { op: "reset", limit, key, start: 0, count: 0, reserve: false }, undefined);
  } finally {
    server.denials.close(place, server.sent);
  }
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
