import type { Custom, SuiteOptions, SuiteRequest } from "./suite.ts";

/** The suite's options, whose functions take a framework's requests; `deny` answers a denied one with `custom`. */
export function optionsFor<R>(
  options: SuiteOptions,
  header: (request: R, name: string) => string | undefined,
  deny: (custom: Custom, ...given: never[]) => unknown,
): object {
  const view = (request: R): SuiteRequest => ({ header: (name) => header(request, name) });
  const converted = (option: unknown): unknown => {
    if (typeof option === "function") return (request: R, ...more: unknown[]) => option(view(request), ...more);
    return Array.isArray(option) ? option.map(allOf) : option;
  };
  const allOf = (rule: object): object =>
    Object.fromEntries(Object.entries(rule).map(([field, option]) => [field, converted(option)]));
  // These do not take the request first.
  const { settle, onDecision, onError, twice: _, custom, ...rest } = options;
  const denied = async (...given: never[]) => {
    if (typeof custom !== "object") throw new Error("denied fails");
    return deny(custom, ...given);
  };
  return { ...allOf(rest), settle, onDecision, onError, denied: custom && denied };
}
