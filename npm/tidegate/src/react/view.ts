/** What a component shows of a limit at an instant. */
import type { Decision } from "../limit/decision.ts";
import { evaluate } from "../limit/evaluate.ts";
import type { ServerState } from "./remote.ts";

/** What a component can show of a limit. All `undefined` until the server has sent the limit's state. */
export interface View {
  /** Whether a request for `count` tokens would be granted now. */
  readonly ok: boolean | undefined;
  /** Tokens, fractions included; negative while tokens are owed. Reading it renders every `tick` until the limit is full. */
  readonly value: number | undefined;
  /** The same in integer tokens, at least 0. */
  readonly remaining: number | undefined;
  /**
   * Epoch ms on this machine's clock: denied, from when the request is granted; reserved, from when it is paid for.
   * `undefined` if it is granted now, or never will be.
   */
  readonly retryAt: number | undefined;
  /** The wait until then in ms, rounded up to a whole `tick`. Reading it renders every `tick`. */
  readonly retryAfter: number | undefined;
  /** Why the last request failed; `undefined` after the next response. */
  readonly error: unknown;
}

/** The request that a component shows the decision for. */
export interface Wish {
  readonly count: number;
  readonly reserve: boolean;
}

/** What a component shows. */
export interface Shown {
  readonly wish: Wish;
  /** How often waits and values change, ms. */
  readonly tick: number;
}

/** The decision on a request, at an instant of the server's clock. */
export const decide = ({ value, ts, config }: ServerState, { count, reserve }: Wish, now: number): Decision =>
  evaluate({ value, ts }, config, { now, count, reserve }).decision;

/** The state before any request. */
const look = (state: ServerState, now: number): Decision => decide(state, { count: 0, reserve: false }, now);

const NOTHING: View = {
  ok: undefined,
  value: undefined,
  remaining: undefined,
  retryAt: undefined,
  retryAfter: undefined,
  error: undefined,
};

/** The view at an instant of the server's clock; `here` converts such an instant to this machine's. */
export function viewAt(
  now: number,
  state: ServerState | undefined,
  { wish, tick }: Shown,
  error: unknown,
  here: (at: number) => number,
): View {
  if (state === undefined) return { ...NOTHING, error };
  const { ok, retryAt } = decide(state, wish, now);
  const { value, remaining } = look(state, now);
  if (retryAt === undefined) return { ...NOTHING, ok, value, remaining, error };
  const retryAfter = Math.ceil((retryAt - now) / tick) * tick;
  return { ok, value, remaining, retryAt: here(retryAt), retryAfter, error };
}

/** The next instant of the server's clock at which one of these fields changes; infinite if none does. */
export function nextChange(
  now: number,
  state: ServerState | undefined,
  { wish, tick }: Shown,
  fields: ReadonlySet<keyof View>,
): number {
  let next = Infinity;
  if (state === undefined) return next;
  const sooner = (at = now): void => {
    if (at > now && at < next) next = at;
  };
  const { retryAt } = decide(state, wish, now);
  const { remaining, resetAt } = look(state, now);
  if (retryAt !== undefined) {
    if (fields.has("ok") || fields.has("retryAt") || fields.has("retryAfter")) sooner(retryAt);
    // Rounded up, it is one tick less from exactly that instant on.
    if (fields.has("retryAfter")) sooner(retryAt - (Math.ceil((retryAt - now) / tick) - 1) * tick);
  }
  if (fields.has("remaining")) sooner(decide(state, { count: remaining + 1, reserve: false }, now).retryAt);
  if (fields.has("value")) sooner(Math.min(now + tick, resetAt));
  return next;
}
