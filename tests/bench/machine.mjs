// The machine of the run, as far as it matters to a reader of ratios.
import { cpus, totalmem, type } from "node:os";

export function machine(version) {
  const [cpu] = cpus();
  return {
    tidegate: version,
    node: process.version,
    v8: process.versions.v8,
    system: `${type()} ${process.arch}`,
    cpu: cpu?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    at: new Date().toISOString().slice(0, 10),
  };
}
