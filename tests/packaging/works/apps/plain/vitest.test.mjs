import { defineLimits, memory, MINUTE } from "tidegate";
import { storeSuite } from "tidegate/testing";
import { describe, expect, test } from "vitest";

test("two tokens", () => {
  const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
  expect(["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok)).toEqual([true, true, false, true]);
});
storeSuite({ create: () => memory(), test, describe });
