import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { definePolicies, keysOfPolicies } from "../../src/policies/index.ts";
import { policyKey } from "../../src/policies/key.ts";

const bucket = { algorithm: "token_bucket", algorithm_config: { rps: 1, burst: 3 } } as const;
const policies = definePolicies({
  rules: [
    { name: "one", limit_keys: ["header:a"], ...bucket },
    { name: "two", limit_keys: ["header:a", "header:b"], ...bucket },
    { name: "ip", limit_keys: ["ip:address"], ...bucket },
    { name: "all", limit_keys: [], ...bucket },
    {
      name: "plans",
      limit_keys: ["header:a"],
      tiers: { by: "header:p", settings: { pro: { rps: 9, burst: 9 } } },
      ...bucket,
    },
  ],
});
const keys = keysOfPolicies(policies);
const textOf = (...values: (string | undefined)[]) => keys.text("one", policyKey(...values) as string);

describe("keysOfPolicies", () => {
  test("names the rules in force without tiers, those of a reload too", () => {
    expect(keys.names).toEqual(["one", "two", "ip", "all"]);
    const reloaded = definePolicies({ rules: [{ name: "a", limit_keys: [], ...bucket }] });
    const its = keysOfPolicies(reloaded);
    reloaded.reload({ rules: [{ name: "b", limit_keys: [], ...bucket }] });
    expect(its.names).toEqual(["b"]);
    expect(() => keys.target("plans", "k")).toThrow("`name` must be a rule without tiers: what a key's tier allows");
    expect(() => keys.target("none", "k")).toThrow("`name` must be one of the rules in force");
  });

  test("shows one value as it is, several as JSON, and what reads as another form in an array", () => {
    expect([textOf("203.0.113.7"), textOf("acme", undefined), textOf(undefined)]).toEqual([
      "203.0.113.7",
      '["acme",null]',
      "[null]",
    ]);
    expect([textOf(""), textOf('["a"]'), textOf("[a")]).toEqual(['[""]', '["[\\"a\\"]"]', "[a"]);
    const hashed = textOf("x".repeat(2000));
    expect(hashed).toMatch(/^sha256:[\da-f]{64}$/);
    expect(keys.target("one", hashed).key).toBe(hashed);
  });

  test("the text of a key leads back to the key, whatever its values", () => {
    const hash = `sha256:${"0".repeat(64)}`;
    const others = fc.constantFrom("[", '["a"]', "[null]", "-", "1:a", hash);
    const value = fc.option(fc.oneof(fc.string({ unit: "binary" }), others), { nil: undefined });
    for (const [name, length] of [
      ["one", 1],
      ["two", 2],
    ] as const) {
      fc.assert(
        fc.property(fc.array(value, { minLength: length, maxLength: length }), (values) => {
          const key = policyKey(...values) as string;
          expect(keys.target(name, keys.text(name, key)).key).toBe(key);
        }),
      );
    }
  });

  test("an address is its client, and wrong texts are refused", () => {
    expect(keys.target("ip", "2001:db8:0:12ff::1").key).toBe(policyKey("2001:db8:0:1200::/56"));
    expect(keys.target("all", undefined)).toEqual({ config: policies.configOf("all") });
    expect(() => keys.target("all", "k")).toThrow("`key` must be left out");
    expect(() => keys.target("all", `sha256:${"0".repeat(64)}`)).toThrow("`key` must be left out");
    expect(() => keys.target("two", "k")).toThrow('in order: header:a, header:b; got "k"');
    expect(() => keys.target("two", '["a", 1]')).toThrow("in order: header:a, header:b");
    expect(keys.text("one", "9:short")).toBe("9:short");
  });
});
