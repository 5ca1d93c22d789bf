/** Metrics in the format of Prometheus: those of `tidegate/observe`, and the service's own. */
import { collectDefaultMetrics, Counter, Histogram, Registry } from "prom-client";
import { type DecisionEvent, metrics, type MeterLike } from "tidegate/observe";

/** OpenTelemetry's name as Prometheus writes it: `tidegate.wait` in s is `tidegate_wait_seconds`. */
const nameOf = (name: string, suffix: string): string => `${name.replaceAll(".", "_")}_${suffix}`;

/** A meter of OpenTelemetry that records in a registry of Prometheus. */
function meterOn(registry: Registry): MeterLike {
  const registers = [registry];
  return {
    createCounter(name, { description = name } = {}) {
      const labelNames = ["limit", "operation", "outcome", "degraded"];
      const counter = new Counter({ name: nameOf(name, "total"), help: description, labelNames, registers });
      return {
        add: (value, attributes = {}) =>
          counter.inc({ ...attributes, degraded: String(attributes["degraded"]) } as Record<string, string>, value),
      };
    },
    createHistogram(name, { description = name } = {}) {
      const buckets = [0.1, 1, 5, 10, 60, 300, 3600, 86_400];
      const labelNames = ["limit"];
      const histogram = new Histogram({
        name: nameOf(name, "seconds"),
        help: description,
        labelNames,
        buckets,
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

/** What the service counts. */
export interface Metrics {
  /** Counts a decision. */
  readonly observer: (event: DecisionEvent) => void;
  /** Counts a reload of the policies. */
  reloaded(ok: boolean): void;
  /** Counts a response. */
  answered(route: string, status: number): void;
  /** The text of `/metrics`, and its media type. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** Makes the metrics, with the evictions of a store that counts them. */
export function metricsOf(store: { stats(): { evicted: number } } | undefined): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const observer = metrics(meterOn(registry), store === undefined ? {} : { store });
  const responses = new Counter({
    name: "tidegate_http_responses_total",
    help: "Responses, by route and status",
    labelNames: ["route", "status"],
    registers,
  });
  const reloads = new Counter({
    name: "tidegate_policy_reloads_total",
    help: "Reloads of the policies; the result is ok, or rejected where the old ones stay in force",
    labelNames: ["result"],
    registers,
  });
  return {
    observer,
    reloaded: (ok) => reloads.inc({ result: ok ? "ok" : "rejected" }),
    answered: (route, status) => responses.inc({ route, status }),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
