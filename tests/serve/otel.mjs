// An SDK of OpenTelemetry, as `--import` starts one: it prints the counters every 50 ms.
import { metrics } from "@opentelemetry/api";
import { AggregationTemporality, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";

const exporter = {
  export({ scopeMetrics }, done) {
    const values = scopeMetrics.flatMap(({ scope, metrics }) =>
      metrics.flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({ scope, name: descriptor.name, attributes, value })),
      ),
    );
    process.stdout.write(`${JSON.stringify({ event: "metrics", values })}\n`);
    done({ code: 0 });
  },
  selectAggregationTemporality: () => AggregationTemporality.CUMULATIVE,
  forceFlush: async () => {},
  shutdown: async () => {},
};
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 50, exportTimeoutMillis: 50 });
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
