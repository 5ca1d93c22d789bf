/** The switch for shadow mode. */
import { definePolicies, keysOfPolicies } from "tidegate/policies";
import { describe, expect, test, vi } from "vitest";
import { type ConsoleOptions, createConsole } from "../src/index.ts";
import { firstData, get, make, post, SAME } from "./requests.ts";

describe("the switch for shadow mode", () => {
  const api = { name: "api", limit_keys: [], algorithm: "token_bucket", algorithm_config: { rate: 1, period: "1h" } };
  const put = (on: unknown, more: object = {}) => post({ operation: "shadow", name: "api", on, ...more });
  function switched(options: Partial<ConsoleOptions> = {}) {
    const policies = definePolicies({ rules: [api, { ...api, name: "trial", shadow: true }] });
    const keys = keysOfPolicies(policies);
    return {
      policies,
      ...createConsole(policies.limiter, { authorize: () => true, keys, shadow: policies, ...options }),
    };
  }

  test("lets the limit's denials through, and back, and reports it to onAction before", async () => {
    const actions: unknown[] = [];
    const { policies, limits, fetch } = switched({
      onAction: ({ request: _, ...action }) => void actions.push([action, policies.isShadow("api")]),
    });
    const grants = () => limits.limit("api", { config: policies.configOf("api") }).ok;
    expect([grants(), grants()]).toEqual([true, false]);
    const answer = await fetch(put(true));
    expect([answer.status, await answer.json()]).toEqual([200, { name: "api", on: true }]);
    expect(grants()).toBe(true);
    await fetch(put(false));
    expect(grants()).toBe(false);
    expect(actions).toEqual([
      [{ operation: "shadow", name: "api", count: 0, on: true }, false],
      [{ operation: "shadow", name: "api", count: 0, on: false }, true],
    ]);
  });

  test("an error of the application's switches ends a stream that is open, and not the process", async () => {
    vi.useFakeTimers();
    const { policies, fetch } = switched();
    const reader = ((await fetch(get(SAME, "?stream"))).body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    vi.spyOn(policies, "isShadow").mockImplementation(() => {
      throw new Error("the switches are gone");
    });
    vi.advanceTimersByTime(1000);
    await expect(reader.read()).rejects.toThrow("the switches are gone");
    expect(vi.getTimerCount()).toBe(0);
    await expect(fetch(get(SAME, "?stream"))).rejects.toThrow("the switches are gone");
  });

  test("the figures have its current state", async () => {
    const { policies, fetch } = switched();
    const switches = async () => (await firstData(await fetch(get(SAME, "?stream"))))[0] as { switches: unknown };
    const both = (api: boolean) => [
      { name: "api", on: api },
      { name: "trial", on: true },
    ];
    expect((await switches()).switches).toEqual(both(false));
    policies.setShadow("api", true);
    expect((await switches()).switches).toEqual(both(true));
    policies.reload({ rules: [api] });
    expect((await switches()).switches).toEqual([{ name: "api", on: false }]);
  });

  test.each([
    [{ on: 1 }, "`on` must be true or false"],
    [{ on: true, name: 7 }, "`name` must be a string"],
    [{ on: true, name: "apo" }, /^`name` must be one of the rules in force: api, trial; got "apo"/],
    [{ on: true, key: "ann" }, 'the body has no field "key"'],
  ])("refuses %j", async (body, message) => {
    const actions: unknown[] = [];
    const response = await switched({ onAction: (action) => void actions.push(action) }).fetch(put(true, body));
    const error = typeof message === "string" ? message : expect.stringMatching(message);
    expect([response.status, await response.json(), actions]).toEqual([400, { error }, []]);
  });

  test("is refused from another site, where onAction throws, and where the console has none", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const { policies, fetch } = switched({ onAction: () => Promise.reject(new Error("no audit log")) });
    const cross = post({ operation: "shadow", name: "api", on: true }, { "sec-fetch-site": "cross-site" });
    expect([(await fetch(cross)).status, (await fetch(put(true))).status]).toEqual([403, 500]);
    expect(policies.isShadow("api")).toBe(false);
    const none = await make().fetch(put(true));
    const error = "this console has no switch for shadow mode: its option `shadow`";
    expect([none.status, await none.json()]).toEqual([400, { error }]);
  });
});
