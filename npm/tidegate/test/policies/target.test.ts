import { describe, expect, test } from "vitest";
import { definePolicies, policyTarget } from "../../src/policies/index.ts";

const bucket = { algorithm: "token_bucket", algorithm_config: { rps: 1, burst: 3 } } as const;
const policies = definePolicies({
  rules: [
    { name: "api", limit_keys: ["ip:address"], ...bucket },
    {
      name: "plans",
      limit_keys: ["header:x-tenant", "query:user"],
      tiers: { by: "header:x-plan", settings: { pro: { rps: 10, burst: 30 } } },
      ...bucket,
    },
    { name: "all", limit_keys: [], algorithm: "token_bucket", algorithm_config: { rps: 1, burst: 100 } },
  ],
});
/** Takes the limit's tokens in a request, and returns what is left by the target. */
function left(request: Parameters<typeof policies.limit>[0], target: Parameters<typeof policyTarget>[1]): number {
  policies.limit(request);
  const { name, ...call } = policyTarget(policies, target);
  return Math.floor(policies.limiter.getValue(name, call).value);
}

describe("policyTarget", () => {
  test("is the key that requests of these values have", () => {
    const url = "/?user=u";
    const headers = { "x-tenant": "acme" };
    expect(left({ address: "203.0.113.7", headers, url }, { name: "api", key: "203.0.113.7" })).toBe(2);
    expect(left({ address: "2001:db8::/56", headers, url }, { name: "api", key: "2001:db8:0:ff::2" })).toBe(2);
    expect(left({ address: "a", url: "/?user=v" }, { name: "plans", key: [null, "v"] })).toBe(2);
    expect(left({ address: "b", headers }, { name: "plans", key: ["acme", null] })).toBe(2);
    // A header's value, though it reads as an address.
    expect(left({ address: "c", headers: { "x-tenant": "[::1]" } }, { name: "plans", key: ["[::1]", null] })).toBe(2);
    expect(policyTarget(policies, { name: "all" })).toEqual({ name: "all", config: policies.configOf("all") });
  });

  test("has the numbers of a tier", () => {
    const of = (tier?: string) => policyTarget(policies, { name: "plans", key: ["a", "b"], tier }).config;
    expect([of(), of("pro"), of("none")]).toMatchObject([{ capacity: 3 }, { capacity: 30 }, { capacity: 3 }]);
  });

  test("refuses values that are not those of the rule's keys", () => {
    const plans = 'a value for each of limit_keys of "plans", in order: header:x-tenant, query:user';
    const at = (target: object) => () => policyTarget(policies, target as Parameters<typeof policyTarget>[1]);
    expect(at({ name: "plans", key: "a" })).toThrow(`\`key\` must be ${plans}; got "a"`);
    expect(at({ name: "plans", key: ["a", "b", "c"] })).toThrow(plans);
    expect(at({ name: "plans", key: 7n })).toThrow(`${plans}; got 7n`);
    expect(at({ name: "plans", key: ["a", 7n, null] })).toThrow(`${plans}; got ["a",7n,null]`);
    expect(at({ name: "plans", key: { length: 2 } })).toThrow(plans);
    expect(at({ name: "plans" })).toThrow(`${plans}; got none`);
    expect(at({ name: "all", key: "a" })).toThrow(
      '`key` must be left out: all requests share the limit "all"; got "a"',
    );
    // As the limiter does: a caller whose value is missing would share the limit with all such callers.
    expect(at({ name: "api", key: "" })).toThrow('`key` must be not empty; an empty value is [""]; got ""');
    expect(at({ name: "api", key: [""] })).not.toThrow();
    // As in Go's RemoteAddr: each connection would have a limit of its own.
    for (const key of ["203.0.113.7:52144", "[2001:db8::1]:52144", "[2001:db8::1]"]) {
      expect(at({ name: "api", key })).toThrow(`\`key\` must be an address without port and brackets; got "${key}"`);
    }
    expect(at({ name: "plans", key: ["a", 7] })).toThrow("`key[1]` must be a string, or null");
    expect(at({ name: "none", key: "a" })).toThrow("`name` must be one of the rules in force: api, plans, all");
  });
});
