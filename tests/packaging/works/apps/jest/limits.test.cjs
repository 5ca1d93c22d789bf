const { defineLimits, InputError, isInputError, MINUTE, SECOND } = require("tidegate");
const { throttle } = require("tidegate/client");

test("two tokens", () => {
  const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
  expect(["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok)).toEqual([true, true, false, true]);
  expect(() => limits.limit("send", { count: -1 })).toThrow(InputError);
  expect(isInputError(new InputError("count", "a number", -1))).toBe(true);
});

test("every entry loads", () => {
  for (const entry of ["redis", "postgres", "shared", "express", "policies", "client", "testing"]) {
    expect(Object.keys(require(`tidegate/${entry}`))).not.toEqual([]);
  }
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
