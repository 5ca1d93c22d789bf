/** The declarations beside Cloudflare's: their binding is assignable to ours, and our class is a Durable Object to them. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { typeErrors } from "../../packaging/checkers.ts";
import { forTests, install } from "../../packaging/installed.ts";
import { inRuntime } from "../runtimes.ts";

const types = fileURLToPath(new URL("../node_modules/@cloudflare/workers-types/index.d.ts", import.meta.url));
const WORKER = `import { defineLimits, MINUTE } from "tidegate";
import { durableObject, TidegateObject } from "tidegate/durable-object";
import { workersKv } from "tidegate/workers-kv";
export { TidegateObject };
interface Env {
  LIMITS: DurableObjectNamespace<TidegateObject>;
  PLAIN: DurableObjectNamespace;
  QUOTAS: KVNamespace;
}
const configs = { api: { kind: "token bucket", rate: 10, period: MINUTE } } as const;
export default {
  async fetch(_request: Request, env: Env): Promise<Response> {
    const limits = defineLimits(configs, { store: durableObject(env.LIMITS) });
    const others = defineLimits(configs, { store: durableObject(env.PLAIN, { object: (name, key) => name + key }) });
    const approximate: true = workersKv(env.QUOTAS).approximate;
    const all = await others.limitAll([{ name: "api" }]);
    const { ok } = await limits.limit("api", { key: "a" });
    return new Response(String(ok && all.ok && approximate));
  },
} satisfies ExportedHandler<Env>;
`;

await inRuntime("workerd", () => {
  const user = forTests(install());

  test("a typical Worker compiles strictly against both", () => {
    const options = { lib: ["es2022"], module: "esnext", moduleResolution: "bundler" };
    user.write("worker.ts", WORKER);
    expect(typeErrors(user.folder, ["worker.ts", types], options)).toBe("");
  });
});
