import { defineLimits, HOUR } from "tidegate";

const define = () => defineLimits({ send: { kind: "token bucket", rate: 2, period: HOUR } });
export const limits = define();
globalThis.shared ??= define();
/** One limiter of pages and route handlers, which evaluate this file once each. */
export const shared = globalThis.shared;

export function answers() {
  const own = define();
  return ["a", "a", "a", "b"].map((key) => own.limit("send", { key }).ok);
}
