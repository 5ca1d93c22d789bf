import { defineLimits, MINUTE } from "tidegate";

export function answers() {
  const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
  return JSON.stringify(["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok));
}
