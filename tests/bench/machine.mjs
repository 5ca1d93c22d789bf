// The machine of the run, as far as it matters to a reader of ratios.
import { existsSync, readFileSync } from "node:fs";
import { cpus, totalmem, type } from "node:os";

/** The size of the largest cache, as Linux reports it; `undefined` elsewhere. */
function cache() {
  const folder = "/sys/devices/system/cpu/cpu0/cache";
  const files = [3, 2].map((level) => `${folder}/index${level}/size`);
  const found = files.find((file) => existsSync(file));
  return found && `${Number.parseInt(readFileSync(found, "utf8"), 10) / 1024} MiB`;
}

export function machine(version) {
  const [cpu] = cpus();
  return {
    tidegate: version,
    node: process.version,
    v8: process.versions.v8,
    system: `${type()} ${process.arch}`,
    cpu: cpu?.model ?? "unknown",
    cores: cpus().length,
    cache: cache(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    at: new Date().toISOString().slice(0, 10),
  };
}
