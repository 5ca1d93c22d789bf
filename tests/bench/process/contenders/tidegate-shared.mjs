// The table of the whole process, in the native addon, shared by worker threads.
import { defineLimits } from "tidegate";
import { shared } from "tidegate/shared";
import { ourVersion } from "../../installed.mjs";

export function create({ capacity, rate, periodMs, maxKeys }) {
  const limits = defineLimits(
    { api: { kind: "token bucket", rate, period: periodMs, capacity } },
    { store: shared({ maxKeys }) },
  );
  return { kind: "token bucket", version: ourVersion(), decide: (key) => limits.limit("api", { key }) };
}
