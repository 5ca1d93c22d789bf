const { defineLimits, InputError, isInputError, MINUTE } = require("tidegate");

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
