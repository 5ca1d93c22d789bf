/** Decisions as metrics of OpenTelemetry. */
import { checkTable, hasMethods } from "../limit/checks.ts";
import type { Decision } from "../limit/decision.ts";
import { InputError } from "../limit/errors.ts";
import type { DecisionEvent, Observer } from "./observer.ts";

type Attributes = Record<string, string | boolean>;

/** A counter or a histogram of `@opentelemetry/api`, by shape. */
export interface CounterLike {
  add(value: number, attributes?: Attributes): void;
}

/** A meter of `@opentelemetry/api`, by shape: `metrics.getMeter("tidegate")`. */
export interface MeterLike {
  createCounter(name: string, options?: { description?: string; unit?: string }): CounterLike;
  createHistogram(
    name: string,
    options?: { description?: string; unit?: string; advice?: { explicitBucketBoundaries?: number[] } },
  ): { record(value: number, attributes?: Attributes): void };
  createObservableCounter(
    name: string,
    options?: { description?: string; unit?: string },
  ): { addCallback(callback: (result: { observe(value: number): void }) => void): void };
}

/** Settings of {@link metrics}. */
export interface MetricsOptions {
  /** A store that counts evictions, as {@link memory} does: adds `tidegate.evictions`. */
  store?: { stats(): { evicted: number } } | undefined;
}

const OPTIONS = {
  store: {
    expects: "a store with stats(), such as memory()",
    accepts: (store: unknown) => hasMethods(store, "stats"),
  },
};

/** Bounds of the waits' buckets, in s. The SDK's own are meant for ms: the first of them would end at 5 s. */
const WAITS = [0.1, 1, 5, 10, 60, 300, 3600, 86_400];

/**
 * Names of limits with their own series; any further ones count together as `other`. A policy document has at most 101, and
 * reloads may rename them: the series of a name that is gone stays in the meter, so it makes no room.
 */
const MOST_NAMES = 1000;

function checkMeter(meter: unknown): void {
  if (hasMethods(meter, "createCounter", "createHistogram", "createObservableCounter")) return;
  throw new InputError("meter", 'a meter of @opentelemetry/api, such as metrics.getMeter("tidegate")', meter);
}

function outcomeOf({ ok, shadow, reserved, reason }: Decision): string {
  if (shadow?.ok === false) return "shadow denied";
  if (ok) return reserved ? "reserved" : "granted";
  return reason === undefined ? "denied" : "impossible";
}

/**
 * An observer that counts:
 *
 * - `tidegate.decisions` by `limit`, `operation`, `outcome` and `degraded`. An outcome is `granted`, `reserved`, `denied`,
 *   `impossible`, or `shadow denied` for a rule in shadow mode.
 * - `tidegate.wait`, the `retryAfter` of denials in s.
 * - `tidegate.evictions` of the store.
 *
 * Of a `limitAll` that is denied, the limits that deny are counted, and no others. Never by key, and by at most 1000
 * names of limits, so that no client can add series without end; further names count as `other`.
 *
 * ```ts
 * import { metrics as api } from "@opentelemetry/api";
 * const limits = observe(defineLimits({ … }), metrics(api.getMeter("tidegate")));
 * ```
 *
 * Throws an `InputError` if `meter` is not a meter, or `store` counts no evictions.
 */
export function metrics(meter: MeterLike, options: MetricsOptions = {}): Observer {
  checkMeter(meter);
  checkTable("metrics", options, OPTIONS, "an object, such as { store }");
  const { store } = options;
  const decisions = meter.createCounter("tidegate.decisions", { description: "Decisions, by limit and outcome" });
  const waits = meter.createHistogram("tidegate.wait", {
    description: "Wait of denied calls until a retry succeeds",
    unit: "s",
    advice: { explicitBucketBoundaries: [...WAITS] },
  });
  if (store !== undefined) {
    const evictions = meter.createObservableCounter("tidegate.evictions", {
      description: "States evicted before they were full",
    });
    evictions.addCallback((result) => result.observe(store.stats().evicted));
  }
  const names = new Set<string>();
  return ({ operation, name, decision, all }: DecisionEvent): void => {
    // Nothing was taken, as another limit denied the request.
    if (all?.ok === false && decision.ok) return;
    if (names.size < MOST_NAMES) names.add(name);
    const limit = names.has(name) ? name : "other";
    const { ok, retryAfter, degraded = false } = decision;
    decisions.add(1, { limit, operation, outcome: outcomeOf(decision), degraded });
    if (!ok && retryAfter !== undefined) waits.record(retryAfter / 1000, { limit });
  };
}
