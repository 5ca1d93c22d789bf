/** What a limiter decides instead of a store that failed. */
import type { Config, OnStoreError } from "../limit/config.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import { combined } from "../limit/combined.ts";
import { Limit } from "../limit/limit.ts";
import type { Call, Now } from "../stores/contract.ts";
import { MemoryStore } from "../stores/memory.ts";

/** Keys of local limits. */
const LOCAL_KEYS = 100_000;

const timeOf = (now: Now): number => Math.floor(now ?? Date.now());

/** A decision of the local limit as that of the limit. What only the fraction is too small for, the store grants later. */
const standIn = (call: Call, decision: Decision, now: number, cause: unknown): Decision => ({
  ...decision,
  reason: decision.reason && call.limit.never(call, now)?.reason,
  degraded: true,
  cause,
});

/** Decides by `onStoreError`: the limit's own, or else the limiter's. */
export class Fallback {
  readonly #default: OnStoreError;
  readonly #denied: string;
  readonly #store = new MemoryStore({ maxKeys: LOCAL_KEYS });
  readonly #scaled = new WeakMap<Limit, Limit>();

  /** `denied`: the words of the log for calls that are denied. */
  constructor(onStoreError: OnStoreError, denied = 'denied (onStoreError: "deny")') {
    this.#default = onStoreError;
    this.#denied = denied;
  }

  #settingOf(limit: Limit): OnStoreError {
    return limit.onStoreError ?? this.#default;
  }

  #localLimit(limit: Limit, fraction: number): Limit {
    let scaled = this.#scaled.get(limit);
    if (scaled === undefined) {
      const { name, shards: _, ...config } = limit.policy;
      const { rate, capacity, maxReserved } = config;
      scaled = new Limit(name, {
        ...(config as Config),
        // A rate of 0 is no rate; a capacity below one token would deny every single token.
        rate: Math.max(rate * fraction, Number.MIN_VALUE),
        capacity: Math.max(capacity * fraction, Math.min(capacity, 1)),
        maxReserved: maxReserved === undefined ? undefined : maxReserved * fraction,
      });
      this.#scaled.set(limit, scaled);
    }
    return scaled;
  }

  one(call: Call, now: Now, cause: unknown): Decision {
    const at = timeOf(now);
    const setting = this.#settingOf(call.limit);
    if (typeof setting === "object") {
      const decision = this.#store.decide({ ...call, limit: this.#localLimit(call.limit, setting.local) }, at);
      return standIn(call, decision, at, cause);
    }
    const never = call.limit.never(call, at);
    if (never !== undefined) return { ...never, degraded: true, cause };
    const { policy } = call.limit;
    return {
      // A block that was not stored blocks nothing.
      ok: call.op === "give" || call.op === "charge" || (setting === "allow" && call.op !== "block"),
      value: 0,
      ts: at,
      remaining: 0,
      limit: policy.capacity,
      retryAt: undefined,
      retryAfter: undefined,
      resetAt: at,
      reserved: false,
      reason: undefined,
      now: at,
      policy,
      degraded: true,
      cause,
    };
  }

  /** All or nothing without the store: calls on local limits are decided together. */
  several(calls: readonly Call[], now: Now, cause: unknown): AllDecision {
    const at = timeOf(now);
    const isLocal = ({ limit }: Call): boolean => typeof this.#settingOf(limit) === "object";
    const others = calls.filter((call) => !isLocal(call)).map((call) => this.one(call, at, cause));
    const granted = others.every((decision) => decision.ok);
    const scaled = calls.filter(isLocal).map((call): Call => {
      const { local } = this.#settingOf(call.limit) as { local: number };
      return { ...call, op: granted ? call.op : "check", limit: this.#localLimit(call.limit, local) };
    });
    const decided = scaled.length === 0 ? [] : this.#store.decideAll(scaled, at).decisions;
    const decisions = calls.map((call) =>
      isLocal(call) ? standIn(call, decided.shift() as Decision, at, cause) : (others.shift() as Decision),
    );
    return { ...combined(decisions, at), degraded: true, cause };
  }

  /** How calls on these limits are decided, for the log. */
  insteadOf(targets: readonly Pick<Call, "limit">[]): string {
    return [...new Set(targets.map(({ limit }) => this.#wayOf(limit)))].join(", or ");
  }

  #wayOf(limit: Limit): string {
    const setting = this.#settingOf(limit);
    if (typeof setting === "object") return `decided by a local limit (onStoreError: { local: ${setting.local} })`;
    return setting === "deny" ? this.#denied : 'allowed (onStoreError: "allow")';
  }
}
