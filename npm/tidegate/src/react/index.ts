/**
 * A hook for React 18 and 19 that shows a server's limit: it counts down by itself, without requests to the server.
 *
 * @module
 */
"use client";

import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { type Check, check, checkTable, durationFrom, FLAG, msOf } from "../limit/checks.ts";
import { TOKENS } from "../limit/tokens.ts";
import type { Duration } from "../limit/duration.ts";
import { ViewObserver } from "./view-observer.ts";
import { type Learned, type RemoteLimits, type ServerState, STATE } from "./remote.ts";
import { decide, type View, type Wish } from "./view.ts";

export { type Learned, type RemoteLimits, remoteLimits, type ServerState } from "./remote.ts";
export type { View } from "./view.ts";

/** Settings of {@link useRateLimit}. */
export interface UseRateLimitOptions {
  /** The source of the limit; made outside of components by {@link remoteLimits}. */
  from: RemoteLimits;
  /** Tokens that the request will take: 0 to 2^40; default 1. */
  count?: number | undefined;
  /** Whether the request may be granted ahead of time. */
  reserve?: boolean | undefined;
  /** How often `retryAfter` and `value` change: ms from 10 to 3,600,000, or a string such as `"5s"`; default 1000. */
  tick?: Duration | undefined;
  /** The state that the server had when it rendered: shown by the first render of server and browser, until newer state arrives. A later one, such as after a server action, counts too. */
  initial?: ServerState | undefined;
}

/** What {@link RateLimit.check} returns: the decision of the server's limiter, with times on this machine's clock. */
export interface Checked {
  /** Granted: now, or if reserved, at `retryAt`. */
  readonly ok: boolean;
  /** Tokens after the request; if it is denied, tokens now. */
  readonly value: number;
  /** The same in whole tokens, at least 0. */
  readonly remaining: number;
  /** Epoch ms on this machine's clock. */
  readonly retryAt: number | undefined;
  /** ms from now. */
  readonly retryAfter: number | undefined;
}

/**
 * A limit, as a component shows it. Reading a field while rendering makes the component render when that field changes. Its
 * functions work apart from it, and are no methods, which `unbound-method` of typescript-eslint would refuse to take out.
 */
export interface RateLimit extends View {
  /** The decision on a request for this many tokens now; `undefined` until the server has sent the limit's state. */
  readonly check: (wish?: { count?: number | undefined; reserve?: boolean | undefined }) => Checked | undefined;
  /** Takes the state from a response of the server: a decision, or the result of `getValue` with `now`. */
  readonly learn: (learned: Learned) => void;
  /** Loads the state from the server, such as after a request that took tokens. Resolves when it has arrived; never rejects. */
  readonly refresh: () => Promise<void>;
}

const FROM: Check = {
  expects: "what remoteLimits returned outside of components",
  accepts: (from) => typeof (from as Partial<RemoteLimits> | undefined)?.watch === "function",
};
const INITIAL: Check = { expects: STATE, accepts: (state) => typeof state === "object" && state !== null };
/** Renders in a row that each have other limits. */
const MOST_CHANGES = 20;
const WISH: Readonly<Record<keyof Wish, Check>> = { count: TOKENS, reserve: FLAG };
const OPTIONS: Readonly<Record<keyof UseRateLimitOptions, Check>> = {
  from: FROM,
  tick: durationFrom(10, 3_600_000),
  initial: INITIAL,
  ...WISH,
};

/**
 * A server's limit as it is now: whether a request would be granted, what is left, and how long to wait. It is projected
 * here, by the code that decides on the server, from the two numbers that the server sent; a denial ends at its `retryAt`
 * without a request. The component renders when a field that it reads changes, and for nothing else.
 *
 * ```tsx
 * const { ok, retryAfter, refresh } = useRateLimit("sendMessage", { from: limits });
 * const send = () => post("/messages").then(refresh);
 * return <button disabled={ok === false} onClick={send}>{ok === false ? `Send (${(retryAfter ?? 0) / 1000} s)` : "Send"}</button>;
 * ```
 *
 * It shows, and does not decide: the server's limiter does that. Throws an `InputError` if an option is wrong.
 */
export function useRateLimit(name: string, options: UseRateLimitOptions): RateLimit {
  checkTable("useRateLimit", options, OPTIONS, "an object with from");
  const { from, count = 1, reserve = false, initial } = options;
  // A source that the component makes is new at each render, and its answer renders again: requests without end.
  const { current: made } = useRef({ from, changes: 0 });
  made.changes = made.from === from ? 0 : made.changes + 1;
  made.from = from;
  check("from", made.changes > MOST_CHANGES ? {} : from, FROM);
  const tick = msOf(options.tick ?? 1000);
  const wish: Wish = { count, reserve };
  // `initial` is new at every render if it was written in place; the first one is what both sides rendered, and the
  // effect takes later ones.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above; and a wish is its two fields.
  const [observer, rest] = useMemo(
    () => [new ViewObserver({ from, name, wish, tick, initial }), actions(from, name, wish)] as const,
    [from, name, wish.count, wish.reserve, tick],
  );
  const view = useSyncExternalStore(observer.subscribe, observer.view, observer.first);
  useEffect(() => observer.rendered(initial));
  return useMemo(() => reading(observer, view, rest), [observer, view, rest]);
}

type Actions = Pick<RateLimit, "check" | "learn" | "refresh">;

function actions(from: RemoteLimits, name: string, usual: Wish): Actions {
  return {
    check(wish = {}) {
      checkTable("check", wish, WISH);
      const { count = usual.count, reserve = usual.reserve } = wish;
      const state = from.state(name);
      if (state === undefined) return undefined;
      const now = from.now();
      const { ok, remaining, value, retryAt, retryAfter } = decide(state, { count, reserve }, now);
      return { ok, remaining, value, retryAt: retryAt === undefined ? undefined : from.here(retryAt), retryAfter };
    },
    learn: (learned) => from.learn(name, learned),
    refresh: () => from.refresh(name),
  };
}

/** The view behind getters: what is read counts as shown. */
function reading(observer: ViewObserver, view: View, rest: Actions): RateLimit {
  const getters = (Object.keys(view) as (keyof View)[]).map((field) => {
    return [field, { get: () => observer.read(view, field), enumerable: true }] as const;
  });
  return Object.defineProperties({ ...rest }, Object.fromEntries(getters)) as RateLimit;
}
