import { definePolicies, keysOfPolicies, policyTarget } from "tidegate/policies";
import { describe, expect, test } from "vitest";
import { createConsole } from "../src/index.ts";
import type { OperationRequest } from "../src/wire.ts";
import { firstData, get, make, post, SAME, START } from "./requests.ts";

describe("the keys of policies", () => {
  const rule = { algorithm: "token_bucket", algorithm_config: { rate: 1, period: "1s", capacity: 2 } } as const;
  const both = { name: "both", limit_keys: ["header:a", "header:b"], ...rule } as const;

  test("are read and changed by the text that the page shows, and those of a reload at once", async () => {
    const now = () => START;
    const policies = definePolicies({ rules: [both] }, { now });
    const keys = keysOfPolicies(policies);
    const { limits, fetch } = createConsole(policies.limiter, { authorize: () => true, now, keys });
    const { name, ...target } = policyTarget(policies, { name: "both", key: ["acme", null] });
    for (let i = 0; i < 3; i++) limits.limit(name, target);
    const [figures, denials] = await firstData(await fetch(get(SAME, "?stream")));
    expect(figures).toMatchObject({ defined: ["both"], top: [{ name: "both", key: '["acme",null]', atLeast: 1 }] });
    expect(denials).toMatchObject({ denials: [{ name: "both", key: '["acme",null]' }] });
    const operate = async (body: Partial<OperationRequest>) =>
      (await fetch(post({ operation: "read", name: "both", key: '["acme",null]', ...body }))).json();
    expect(await operate({})).toMatchObject({ value: 0, capacity: 2 });
    expect(await operate({ operation: "reset" })).toMatchObject({ value: 2 });
    expect(policies.limiter.check("both", target).ok).toBe(true);
    expect(await operate({ key: "acme" })).toEqual({ error: expect.stringContaining("in order: header:a, header:b") });
    policies.reload({ rules: [{ ...both, name: "other" }] });
    expect(await operate({})).toEqual({
      error: expect.stringContaining("`name` must be one of the rules in force: other"),
    });
    const [after] = await firstData(await fetch(get(SAME, "?stream")));
    expect(after).toMatchObject({ defined: ["other"] });
  });
});

test("close ends the streams of open pages", async () => {
  const { fetch, close } = make();
  const opened = await Promise.all([fetch(get(SAME, "?stream")), fetch(get(SAME, "?stream"))]);
  close();
  for (const response of opened) expect(await response.text()).toContain("event: figures");
});
