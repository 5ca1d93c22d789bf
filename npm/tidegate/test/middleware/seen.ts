import type { Seen, SuiteOptions } from "./suite.ts";

/** The suite's options, whose functions take a framework's requests. */
export function seen<R>(options: SuiteOptions, header: (request: R, name: string) => string | undefined): object {
  const view = (request: R): Seen => ({ header: (name) => header(request, name) });
  const wrap = (option: unknown): unknown =>
    typeof option === "function"
      ? (request: R, ...more: unknown[]) => option(view(request), ...more)
      : Array.isArray(option)
        ? option.map(wrapped)
        : option;
  const wrapped = (rule: unknown): unknown =>
    Object.fromEntries(Object.entries(rule as object).map(([field, value]) => [field, wrap(value)]));
  const { settle, onDecision, onError, twice: _, ...rest } = options;
  const inside = wrapped(rest) as { limits?: unknown };
  if (typeof rest.limits === "function")
    inside.limits = (request: R) => (rest.limits as (seen: Seen) => unknown)(view(request));
  return { ...inside, ...(settle && { settle }), ...(onDecision && { onDecision }), ...(onError && { onError }) };
}
