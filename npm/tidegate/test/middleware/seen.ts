import type { Custom, Seen, SuiteOptions } from "./suite.ts";

/** The suite's options, whose functions take a framework's requests; `deny` answers a denied one with `custom`. */
export function seen<R>(
  options: SuiteOptions,
  header: (request: R, name: string) => string | undefined,
  deny: (custom: Custom, ...given: never[]) => unknown,
): object {
  const view = (request: R): Seen => ({ header: (name) => header(request, name) });
  const wrap = (option: unknown): unknown =>
    typeof option === "function"
      ? (request: R, ...more: unknown[]) => option(view(request), ...more)
      : Array.isArray(option)
        ? option.map(wrapped)
        : option;
  const wrapped = (rule: unknown): unknown =>
    Object.fromEntries(Object.entries(rule as object).map(([field, value]) => [field, wrap(value)]));
  const { settle, onDecision, onError, twice: _, custom, ...rest } = options;
  const inside = wrapped(rest) as { limits?: unknown };
  if (typeof rest.limits === "function")
    inside.limits = (request: R) => (rest.limits as (seen: Seen) => unknown)(view(request));
  const denied = async (...given: never[]) => {
    if (typeof custom !== "object") throw new Error("denied fails");
    return deny(custom, ...given);
  };
  const functions = { settle, onDecision, onError, denied: custom && denied };
  return { ...inside, ...Object.fromEntries(Object.entries(functions).filter(([, given]) => given !== undefined)) };
}
