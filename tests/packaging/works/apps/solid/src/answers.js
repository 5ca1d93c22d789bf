import { defineLimits, MINUTE } from "tidegate";
import { redis } from "tidegate/redis";

export function answers() {
  if (typeof redis !== "function") throw new Error("tidegate/redis is not loaded");
  const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
  return ["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok);
}
