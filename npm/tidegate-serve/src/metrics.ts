/** Metrics, in the format of Prometheus and for OpenTelemetry: those of `tidegate/observe`, and the service's own. */
import { createNoopMeter, metrics as api } from "@opentelemetry/api";
import { collectDefaultMetrics, Counter, Histogram, Registry } from "prom-client";
import { type DecisionEvent, metrics, type MeterLike } from "tidegate/observe";

/** OpenTelemetry's name as Prometheus writes it: `tidegate.wait` in s is `tidegate_wait_seconds`. */
const nameOf = (name: string, suffix: string): string => `${name.replaceAll(".", "_")}_${suffix}`;

/** Prometheus has to know the labels of a counter; by its name in OpenTelemetry. */
const LABELS: Readonly<Record<string, readonly string[]>> = {
  "tidegate.decisions": ["limit", "operation", "outcome", "degraded"],
  "tidegate.http.responses": ["route", "status"],
  "tidegate.policy.reloads": ["result"],
};

/** A meter of OpenTelemetry that records in a registry of Prometheus. */
function meterOn(registry: Registry): MeterLike {
  const registers = [registry];
  return {
    createCounter(name, { description = name } = {}) {
      const labelNames = [...(LABELS[name] as readonly string[])];
      const counter = new Counter({ name: nameOf(name, "total"), help: description, labelNames, registers });
      return {
        // A label that is `true` or `false` is written as such.
        add: (value, attributes = {}) => counter.inc(attributes as Record<string, string>, value),
      };
    },
    createHistogram(name, { description = name, advice } = {}) {
      const labelNames = ["limit"];
      const histogram = new Histogram({
        name: nameOf(name, "seconds"),
        help: description,
        labelNames,
        buckets: advice?.explicitBucketBoundaries ?? [],
        registers,
      });
      return { record: (value, attributes = {}) => histogram.observe(attributes as Record<string, string>, value) };
    },
    createObservableCounter(name, { description = name } = {}) {
      return {
        addCallback(callback) {
          let reported = 0;
          const counter = new Counter({
            name: nameOf(name, "total"),
            help: description,
            registers,
            collect: () =>
              callback({
                observe: (value) => {
                  counter.inc(Math.max(value - reported, 0));
                  reported = value;
                },
              }),
          });
        },
      };
    },
  };
}

export interface Metrics {
  readonly observer: (event: DecisionEvent) => void;
  reloaded(ok: boolean): void;
  /** Counts a response. */
  answered(route: string, status: number): void;
  /** The text of `/metrics`, and its media type. */
  text(): Promise<string>;
  readonly contentType: string;
}

/**
 * The meter of the OpenTelemetry that the process was started with, if it was. The API is bundled: all its copies in a
 * process find the same SDK, by a symbol.
 */
export function openTelemetry(version: string): MeterLike | undefined {
  const meter = api.getMeter("tidegate-serve", version);
  return meter === createNoopMeter() ? undefined : meter;
}

/** Makes the metrics, with the evictions of a store that counts them. A `meter` gets the same as Prometheus. */
export function metricsOf(store: { stats(): { evicted: number } } | undefined, meter: MeterLike | undefined): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const meters = [meterOn(registry), ...(meter === undefined ? [] : [meter])];
  const observers = meters.map((one) => metrics(one, { store }));
  const counter = (name: string, description: string) => {
    const counters = meters.map((one) => one.createCounter(name, { description }));
    return (attributes: Record<string, string>): void => {
      for (const one of counters) one.add(1, attributes);
    };
  };
  const answered = counter("tidegate.http.responses", "Responses, by route and status");
  const reloaded = counter(
    "tidegate.policy.reloads",
    "Reloads of the policies; the result is ok, or rejected if the old ones stay in force",
  );
  return {
    observer: (event) => {
      for (const observer of observers) observer(event);
    },
    reloaded: (ok) => reloaded({ result: ok ? "ok" : "rejected" }),
    answered: (route, status) => answered({ route, status: String(status) }),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
