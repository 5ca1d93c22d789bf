/** What a Worker has in place of a binding that its configuration lacks. */
import { expect, test } from "vitest";
import { durableObject } from "../src/stores/durable-object.ts";
import { workersKv } from "../src/stores/workers-kv.ts";

const env: { LIMITS?: never; QUOTAS?: never } = {};

test.each([
  ["durableObject", () => durableObject(env.LIMITS as never), "durable_objects.bindings"],
  ["workersKv", () => workersKv(env.QUOTAS as never), "kv_namespaces"],
])("%s without a binding throws an error that names the setting for it", (_, make, setting) => {
  expect(make).toThrow(`got undefined; add this binding to \`${setting}\` in wrangler.jsonc`);
});
