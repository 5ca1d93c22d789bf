import { jest } from "@jest/globals";
import { createRequire } from "node:module";
import { defineLimits, memory, MINUTE, SECOND } from "tidegate";
import { throttle } from "tidegate/client";
import { redis } from "tidegate/redis";

const require = createRequire(import.meta.url);

test("two tokens, on a store that `require` made", () => {
  const store = require("tidegate").memory();
  const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } }, { store });
  expect(["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok)).toEqual([true, true, false, true]);
  expect(typeof memory).toBe("function");
  expect(typeof redis).toBe("function");
});

test("fake timers move limits, and what waits", async () => {
  jest.useFakeTimers();
  const second = { kind: "token bucket", rate: 1, period: SECOND };
  const limits = defineLimits({ second });
  const decide = () => limits.limit("second").ok;
  expect([decide(), decide()]).toEqual([true, false]);
  jest.advanceTimersByTime(999);
  expect(decide()).toBe(false);
  jest.advanceTimersByTime(1);
  expect(decide()).toBe(true);
  const ran = [];
  const run = throttle((n) => ran.push(n), second);
  const all = Promise.all([run(1), run(2)]);
  await jest.advanceTimersByTimeAsync(999);
  expect(ran).toEqual([1]);
  await jest.advanceTimersByTimeAsync(1);
  await all;
  expect(ran).toEqual([1, 2]);
  jest.useRealTimers();
});
