/** Answers that are known without asking the server. */

import type { Decision } from "../../limit/decision.ts";
import type { Call as StoreCall } from "../contract.ts";
import type { Server } from "./server.ts";

/** What a call answers whatever is stored, or `undefined`: it asks for more than there ever is. */
export function never(server: Server, call: StoreCall, now: number | undefined): Decision | undefined {
  return call.limit.never(call, now ?? server.clock.latest() ?? Date.now());
}

/** The clock by which a denial can be answered again, where there is one: the kind that stamped it. */
export function clockFor(server: Server, passed: boolean, now: number | undefined): number | undefined {
  if (passed !== (now !== undefined)) return undefined;
  return now ?? server.clock.latest();
}

/** The answer from what was denied last on this key, as long as it still denies. */
export function recall(
  server: Server,
  place: string,
  call: StoreCall,
  start: number,
  now: number | undefined,
): Decision | undefined {
  const denial = server.denials.get(place);
  if (denial === undefined) return undefined;
  const at = clockFor(server, denial.passed, now);
  if (at === undefined) return undefined;
  const [state = null] = denial.states;
  const { decision } = call.limit.evaluate(state, call, at, { start });
  if (!decision.ok) return decision;
  server.denials.forget(place);
  return undefined;
}
