/** The glue of wasm-bindgen between policies and the module that checks them. */
import { afterEach, expect, test, vi } from "vitest";

const own = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "detached");
afterEach(() => {
  Reflect.deleteProperty(ArrayBuffer.prototype, "detached");
  if (own !== undefined) Object.defineProperty(ArrayBuffer.prototype, "detached", own);
});

test("documents are checked where the host's `detached` is wrong, as that of SES on Node.js 20: memory that has grown has new views", async () => {
  Object.defineProperty(ArrayBuffer.prototype, "detached", { get: () => false, configurable: true });
  vi.resetModules();
  const { checkPolicies } = await import("../../src/policies/check.ts");
  const rule = { name: "api", limit_keys: [], algorithm: "fixed_window", algorithm_config: { rate: 1, period: "1m" } };
  expect(checkPolicies({ rules: [rule] })).toEqual([]);
});
