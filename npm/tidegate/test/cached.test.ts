/** Limits of configs that come with calls: equal ones are made once, and a mistake is not taken for one that is cached. */
import { expect, test } from "vitest";
import { type Config, defineLimits } from "../src/index.ts";
import { cached } from "../src/limit/cached.ts";
import { behind } from "./behind.ts";

/** A mistake, which no type allows. */
const odd = (config: object): Config => config as Config;

test("a string equal to a cached number is refused", () => {
  const limits = defineLimits({});
  const inline = { kind: "token bucket", rate: 7, period: 1234 } as const;
  expect(limits.limit("inline", { config: inline }).ok).toBe(true);
  expect(() => limits.limit("inline", { config: odd({ ...inline, rate: "7" }) })).toThrow(
    /`rate` must be .*; got "7"$/,
  );
  expect(() => limits.limit("inline", { config: odd({ ...inline, capacity: "" }) })).toThrow(
    /`capacity` must be .*; got ""$/,
  );
});

test("a config with more than a cached one is not taken for it", async () => {
  const store = behind(() => Promise.reject(new Error("connection refused")), "broken");
  const limits = defineLimits({}, { store, log: false });
  const inline = { kind: "token bucket", rate: 7, period: 1234 } as const;
  expect((await limits.limit("inline", { config: inline })).ok).toBe(false);
  expect((await limits.limit("inline", { config: { ...inline, onStoreError: "allow" } })).ok).toBe(true);
  expect(() => limits.limit("inline", { config: odd({ ...inline, burst: 5 }) })).toThrow("`burst` must be absent");
});

test("a config of the same values in other fields, or of another name, is not taken for a cached one", () => {
  const limits = defineLimits({});
  const inline = { kind: "token bucket", rate: 7, period: 1000 } as const;
  expect(limits.limit("inline", { config: inline }).policy.rate).toBe(7);
  expect(limits.limit("inline", { config: { kind: "token bucket", period: 7, rate: 1000 } }).policy.period).toBe(7);
  expect(limits.limit("other", { config: inline }).policy.name).toBe("other");
});

test.each<Config>([
  { kind: "token bucket", rate: 7, period: "15m" },
  { kind: "fixed window", rate: 7, period: "1d", start: "6h" },
  { kind: "token bucket", rate: 7, period: 1234, capacity: undefined },
  { kind: "token bucket", rate: 7, period: 1234, timeout: "2s", onStoreError: "allow" },
])("equal configs of two calls have the same limit: %o", (config) => {
  let made = 0;
  const of = cached((name) => `${name} ${++made}`);
  expect([of("inline", config), of("inline", { ...config })]).toEqual(["inline 1", "inline 1"]);
});

test("at most a thousand configs that are passed with calls are cached", () => {
  let made = 0;
  const of = cached((name) => `${name} ${++made}`);
  const call = (rate: number) => of("inline", { kind: "token bucket", rate, period: 1234 });
  for (let rate = 1; rate <= 1000; rate++) call(rate);
  expect([call(1), made]).toEqual(["inline 1", 1000]);
  call(1001);
  expect(call(1)).toBe("inline 1002");
});
