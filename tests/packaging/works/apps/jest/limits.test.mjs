import { createRequire } from "node:module";
import { defineLimits, memory, MINUTE } from "tidegate";
import { redis } from "tidegate/redis";

const require = createRequire(import.meta.url);

test("two tokens, on a store that `require` made", () => {
  const store = require("tidegate").memory();
  const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } }, { store });
  expect(["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok)).toEqual([true, true, false, true]);
  expect(typeof memory).toBe("function");
  expect(typeof redis).toBe("function");
});
