/**
 * What a limiter decided, for logs, metrics and traces.
 *
 * @module
 */
export { type DecisionChannel, publish } from "./channel.ts";
export { type CounterLike, type MeterLike, metrics, type MetricsOptions } from "./metrics.ts";
export { type DecisionEvent, type Observer, observe } from "./observer.ts";
