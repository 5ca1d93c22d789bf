/** The declarations beside Cloudflare's: their binding is assignable to ours, and our class is a Durable Object to them. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { forTests, install, output, root } from "../../packaging/installed.ts";
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
    const compilerOptions = {
      target: "es2022",
      lib: ["es2022"],
      module: "esnext",
      moduleResolution: "bundler",
      types: [],
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      noEmit: true,
    };
    user.write("worker.ts", WORKER);
    const project = user.write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["worker.ts", types] }));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    expect(output(process.execPath, [tsc, "--project", project], { cwd: user.folder })).toBe("");
  });
});
