import { checkOnStoreError } from "../limit/config.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import { Limit } from "../limit/limit.ts";
import { MemoryStore } from "../stores/memory.ts";
import { settle } from "../stores/transactional.ts";
import type { Call, OnStoreError } from "../stores/contract.ts";

/** What is answered in place of a store that failed, which is `cause`. */
export interface Fallback {
  one(call: Call, now: number, cause: unknown): Decision;
  /** All or none without the store: those with a local limit together, two on one of them for their sum. */
  several(calls: readonly Call[], now: number, cause: unknown): AllDecision;
  /** What a call on this limit is then, in words: "denied (onStoreError: "deny")". */
  insteadOf(limit: Limit | undefined): string;
}

/** As `onStoreError` says, each limit's own or this one. */
export function fallback(onStoreError: OnStoreError | undefined): Fallback {
  const byDefault = checkOnStoreError(onStoreError) ?? "deny";
  let local: MemoryStore | undefined;
  const locals = new WeakMap<Limit, Limit>();

  const settingOf = (limit: Limit): OnStoreError => limit.onStoreError ?? byDefault;

  const localStore = (): MemoryStore => {
    local ??= new MemoryStore({ maxKeys: 100_000 });
    return local;
  };

  function localLimit(limit: Limit, fraction: number): Limit {
    let scaled = locals.get(limit);
    if (scaled === undefined) {
      const { kind, rate, period, capacity, maxReserved, start } = limit.policy;
      const reserved = maxReserved === undefined ? {} : { maxReserved: maxReserved * fraction };
      // A capacity below one token would deny every single one for ever; a rate of 0 is none.
      const least = Math.min(capacity, 1);
      const scaledRate = Math.max(rate * fraction, Number.MIN_VALUE);
      const common = { rate: scaledRate, period, capacity: Math.max(capacity * fraction, least), ...reserved };
      const window = start === undefined ? {} : { start };
      scaled = new Limit(limit.name, kind === "token bucket" ? { kind, ...common } : { kind, ...common, ...window });
      locals.set(limit, scaled);
    }
    return scaled;
  }

  function one(call: Call, now: number, cause: unknown): Decision {
    const setting = settingOf(call.limit);
    if (typeof setting === "object") {
      const decision = localStore().decide({ ...call, limit: localLimit(call.limit, setting.local) }, now);
      return { ...decision, degraded: true, cause };
    }
    const { policy } = call.limit;
    const never = call.limit.never(call, now);
    if (never !== undefined) return { ...never, degraded: true, cause };
    const ok = call.op === "give" || call.op === "charge" || setting === "allow";
    const decision: Decision = {
      ok,
      value: 0,
      ts: now,
      remaining: 0,
      limit: policy.capacity,
      retryAt: undefined,
      retryAfter: undefined,
      resetAt: now,
      reserved: false,
      reason: undefined,
      now,
      policy,
    };
    return { ...decision, degraded: true, cause };
  }

  function several(calls: readonly Call[], now: number, cause: unknown): AllDecision {
    const isLocal = (call: Call): boolean => typeof settingOf(call.limit) === "object";
    const others = calls.filter((call) => !isLocal(call)).map((call) => one(call, now, cause));
    const granted = others.every((decision) => decision.ok);
    const scaled = calls.filter(isLocal).map((call): Call => {
      const { local: fraction } = settingOf(call.limit) as { local: number };
      return { ...call, op: granted ? call.op : "check", limit: localLimit(call.limit, fraction) };
    });
    const decided = scaled.length === 0 ? [] : localStore().decideAll(scaled, now).decisions;
    const [locals, rest] = [decided.values(), others.values()];
    const decisions = calls.map((call): Decision => {
      const { value } = isLocal(call) ? locals.next() : rest.next();
      return { ...(value as Decision), degraded: true, cause };
    });
    return { ...settle(decisions, now), degraded: true, cause };
  }

  function insteadOf(limit: Limit | undefined): string {
    const setting = limit?.onStoreError ?? byDefault;
    if (typeof setting === "object") return `decided by a local limit (onStoreError: { local: ${setting.local} })`;
    return setting === "deny" ? 'denied (onStoreError: "deny")' : 'allowed (onStoreError: "allow")';
  }

  return { one, several, insteadOf };
}
