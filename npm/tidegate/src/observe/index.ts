/**
 * Decisions of a limiter, for logs, metrics and traces.
 *
 * @module
 */
export { type CounterLike, type MeterLike, metrics, type MetricsOptions } from "./metrics.ts";
export { type DecisionChannel, type DecisionEvent, type Observer, observe, publish } from "./observer.ts";
