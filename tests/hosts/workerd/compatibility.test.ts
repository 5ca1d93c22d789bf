/** The oldest compatibility dates of Workers that the package runs with. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { forTests, install, root } from "../../packaging/installed.ts";
import { inRuntime } from "../runtimes.ts";
import { bundle, bundleOf, miniflare } from "./server.ts";

const WORKER = `import { env } from "cloudflare:workers";
import { defineLimits, HOUR } from "tidegate";
import { durableObject } from "tidegate/durable-object";
export { TidegateObject } from "tidegate/durable-object";
const two = { two: { kind: "token bucket", rate: 2, period: HOUR } };
const inMemory = defineLimits(two);
async function inObject() {
  try {
    const { ok, cause } = await defineLimits(two, { store: durableObject(env.LIMITS), timeout: 60_000 }).limit("two");
    return cause?.message ?? ok;
  } catch ({ code, message }) {
    return code + " " + message;
  }
}
export default { fetch: async () => Response.json({ memory: inMemory.limit("two").ok, object: await inObject() }) };
`;
/** The first date with RPC, which the site's page names. */
const FIRST = "2024-04-03";

await inRuntime("workerd", (wrangler) => {
  const user = forTests(install());
  user.write("worker.js", WORKER);
  bundle(wrangler, user.folder, ["worker.js", "--name", "old", "--compatibility-date", FIRST]);
  const modulesRoot = bundleOf(user.folder);

  async function under(compatibilityDate: string): Promise<unknown> {
    const worker = await miniflare({
      modules: true,
      modulesRoot,
      scriptPath: join(modulesRoot, "worker.js"),
      modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
      compatibilityDate,
      durableObjects: { LIMITS: { className: "TidegateObject", useSQLite: true } },
    });
    try {
      return await (await worker.dispatchFetch("http://localhost/")).json();
    } finally {
      await worker.dispose();
    }
  }

  test("limits in memory run with the oldest date that Workers accept", async () => {
    expect(await under("2021-11-02")).toMatchObject({ memory: true });
  });

  test("Durable Objects require 2024-04-03: that date works, and the error of the day before names it", async () => {
    expect(await under(FIRST)).toEqual({ memory: true, object: true });
    expect(await under("2024-04-02")).toEqual({
      memory: true,
      object:
        "TIDEGATE_INPUT `compatibility_date` must be 2024-04-03 or later: objects are called by RPC; got an earlier one",
    });
    expect(readFileSync(join(root, "npm/site/start/workers.md"), "utf8")).toContain(`\`compatibility_date\` ${FIRST}`);
  });
});
