// The package as a user has it: a named limit, the in-memory store, the wasm engine.
import { defineLimits, memory } from "tidegate";
import { ourVersion } from "../../installed.mjs";

export function create({ capacity, rate, periodMs, maxKeys }) {
  const limits = defineLimits(
    { api: { kind: "token bucket", rate, period: periodMs, capacity } },
    { store: memory({ maxKeys }) },
  );
  return { kind: "token bucket", version: ourVersion(), decide: (key) => limits.limit("api", { key }) };
}
