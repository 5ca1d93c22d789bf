/**
 * What a limiter decided, for logs, metrics and traces.
 *
 * @module
 */
export { type DecisionChannel, publish } from "./observe/channel.ts";
export { type CounterLike, type MeterLike, metrics, type MetricsOptions } from "./observe/metrics.ts";
export { type DecisionEvent, type Observer, observe } from "./observe/observer.ts";
