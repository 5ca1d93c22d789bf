/** A decision in the units of HTTP: integer tokens and seconds. */
import type { AllDecision, Decision } from "../limit/decision.ts";
import { InputError, showInstead } from "../limit/errors.ts";
import { type JitterOptions, jitter } from "../limit/jitter.ts";
import { integer } from "./structured.ts";

/** How the wait of a denied client is spread. */
export interface RetryOptions {
  /**
   * Spreads clients that were denied together: up to `fraction` (default 0.5) of the wait is added, the same for the
   * same `key` and time. Never earlier than `retryAt`. Default: none.
   */
  jitter?: JitterOptions | undefined;
}

/** One limit in the units of HTTP fields: integer tokens, integer seconds. */
export interface Quota {
  readonly name: string;
  /** The capacity, and the seconds in which it refills: the same in every response. */
  readonly quota: number;
  readonly windowSeconds: number;
  /** Available tokens; absent if no state was read: the count exceeds the capacity, or the store failed. */
  readonly remaining: number | undefined;
  /** Seconds within which no more than `remaining` can be used. */
  readonly withinSeconds: number | undefined;
  /** Denied: when to retry, epoch ms, jitter included. Absent if no wait helps. */
  readonly retryAt: number | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly denied: boolean;
  /** The instant of the decision, epoch ms. */
  readonly now: number;
}

/** A decision, several, or what `limitAll` returns. */
export type Decided = Decision | readonly Decision[] | AllDecision;

/** All that was decided, as a list. */
export function listOf(decided: Decided): readonly Decision[] {
  const list = Array.isArray(decided) ? decided : ((decided as AllDecision | null)?.decisions ?? [decided]);
  for (const decision of list) {
    if (typeof decision?.ok !== "boolean" || !decision.policy) {
      const rule = "a decision, several of them, or what limitAll returns";
      throw new InputError("decision", rule, decision, showInstead(decision));
    }
    for (const field of ["now", "value", "ts", "retryAt", "retryAfter"] as const) {
      const number: unknown = decision[field];
      const optional = field.startsWith("retry");
      if (!(Number.isFinite(number) || (optional && number === undefined)))
        throw new InputError(field, `a finite number${optional ? ", or absent" : ""}`, number);
    }
  }
  if (list.length === 0) throw new InputError("decision", "at least one decision", decided, "none");
  return list as readonly Decision[];
}

/** Whole seconds, rounded up, at least one: a client that waits so long is never early. */
const atLeastOne = (ms: number): number => Math.max(1, integer(Math.ceil(ms / 1000)));

/**
 * Seconds in which `capacity` tokens come: for a fixed window as many whole windows as that takes. Throws if a policy that
 * was written by hand lacks a number.
 */
export function windowSeconds(policy: Decision["policy"]): number {
  const { kind, rate, period, capacity } = policy;
  const ms = kind === "fixed window" ? Math.max(1, Math.ceil(capacity / rate)) * period : (capacity * period) / rate;
  if (!(ms >= 0)) throw new InputError("policy", "an object with rate, period and capacity", policy);
  return atLeastOne(ms);
}

/**
 * A fixed window: until it ends; an empty one until the window that has a whole token. A bucket that has a whole token:
 * what is there, divided by the rate, so that `remaining` in this many seconds is never more than the rate. An empty one:
 * until its next whole token.
 */
export function withinSeconds(decision: Decision, remaining: number): number {
  const { value, ts, now, policy } = decision;
  const { kind, rate, period, capacity } = policy;
  const token = Math.min(1, capacity);
  if (kind === "fixed window") {
    const windows = Math.max(1, Math.floor((token - value) / rate));
    // By the refill's own arithmetic: the quotient's rounding could make it a window more.
    return atLeastOne(ts + (value + windows * rate < token ? windows + 1 : windows) * period - now);
  }
  if (remaining > 0) return atLeastOne((remaining * period) / rate);
  const behind = Math.max(ts - now, 0);
  const ms = behind + ((token - value) * period) / rate;
  // By the refill's own arithmetic, whose rounding may leave the token short at that second.
  const wait = Math.ceil(ms / 1000) * 1000 - behind;
  return atLeastOne(value + (wait * rate) / period < token ? ms + 1000 : ms);
}

function quotaOf(decision: Decision, options: RetryOptions): Quota {
  const { ok, now, policy, value, degraded, reason } = decision;
  const quota = integer(policy.capacity);
  const known = degraded !== true && reason !== "exceeds capacity";
  const remaining = known ? Math.min(integer(value), quota) : undefined;
  const retryAt = ok ? undefined : options.jitter === undefined ? decision.retryAt : jitter(decision, options.jitter);
  const retryAfterSeconds = retryAt === undefined ? undefined : atLeastOne(retryAt - now);
  const within = remaining === undefined ? undefined : withinSeconds(decision, remaining);
  return {
    name: policy.name,
    quota,
    windowSeconds: windowSeconds(policy),
    remaining,
    withinSeconds: within,
    retryAt,
    retryAfterSeconds,
    denied: !ok,
    now,
  };
}

/** The decisions together. */
export interface Quotas {
  /** One for each name, in order: of several keys of one limit the tightest. None for limits in shadow mode. */
  readonly quotas: readonly Quota[];
  /** Seconds after which all that deny would grant; absent if nothing denies, or one of them never would. */
  readonly retryAfterSeconds: number | undefined;
  /** The same as epoch ms. */
  readonly retryAt: number | undefined;
}

/** Denying comes before granting, then the smaller remainder, of equal ones that of the longer time. */
export function tighter(a: Quota, b: Quota): boolean {
  if (a.denied !== b.denied) return a.denied;
  if (a.denied && a.retryAt !== b.retryAt) return (a.retryAt ?? Infinity) > (b.retryAt ?? Infinity);
  if (a.remaining === b.remaining) return (a.withinSeconds as number) > (b.withinSeconds as number);
  return (a.remaining ?? Infinity) < (b.remaining ?? Infinity);
}

/** The contents of fields and body, from the instants of the decisions. */
export function quotasOf(decided: Decided, options: RetryOptions): Quotas {
  const enforced = listOf(decided).filter(({ shadow }) => shadow === undefined);
  const all = enforced.map((decision) => quotaOf(decision, options));
  const denying = all.filter((quota) => quota.denied);
  const never = denying.length === 0 || denying.some((quota) => quota.retryAt === undefined);
  const retryAt = never ? undefined : Math.max(...denying.map((quota) => quota.retryAt as number));
  const retryAfterSeconds = never ? undefined : Math.max(...denying.map((quota) => quota.retryAfterSeconds as number));
  const byName = new Map<string, Quota>();
  for (const quota of all) {
    const known = byName.get(quota.name);
    if (known === undefined || tighter(quota, known)) byName.set(quota.name, quota);
  }
  // No field may point beyond the end of Retry-After.
  const most = retryAfterSeconds ?? Infinity;
  const quotas = [...byName.values()].map(
    (quota): Quota =>
      quota.withinSeconds === undefined ? quota : { ...quota, withinSeconds: Math.min(quota.withinSeconds, most) },
  );
  return { quotas, retryAfterSeconds, retryAt };
}
