/** `wrangler deploy --dry-run` on a minimal Worker, and what it would upload. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { forTests, install } from "../../packaging/installed.ts";
import { inRuntime } from "../runtimes.ts";
import { bundle, bundleOf } from "./server.ts";

const WORKER = `import { defineLimits, MINUTE } from "tidegate";
import { durableObject } from "tidegate/durable-object";
export { TidegateObject } from "tidegate/durable-object";
export default {
  async fetch(request, env) {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 10, period: MINUTE } }, { store: durableObject(env.LIMITS) });
    const { ok } = await limits.limit("api", { key: request.headers.get("cf-connecting-ip") ?? "" });
    return new Response(ok ? "hello" : "slow down", { status: ok ? 200 : 429 });
  },
};
`;
const CONFIG = {
  name: "a-user",
  main: "worker.js",
  compatibility_date: "2026-04-01",
  durable_objects: { bindings: [{ name: "LIMITS", class_name: "TidegateObject" }] },
  migrations: [{ tag: "v1", new_sqlite_classes: ["TidegateObject"] }],
};

await inRuntime("workerd", (wrangler) => {
  const user = forTests(install());
  user.write("worker.js", WORKER);
  user.write("wrangler.json", JSON.stringify(CONFIG));

  test("deploys without configuration: a script, and the wasm as a separate module", () => {
    expect(bundle(wrangler, user.folder, ["--minify"])).toContain("--dry-run: exiting now.");
    const out = bundleOf(user.folder);
    const files = readdirSync(out).filter((file) => /\.(js|wasm)$/.test(file));
    expect(files.filter((file) => file.endsWith(".wasm")).length).toBe(1);
    const sizes = Object.fromEntries(files.map((file) => [file, gzipSync(readFileSync(join(out, file))).length]));
    console.table(sizes);
    // tests/packaging/sizes.test.ts has a tighter bound; this is wrangler's bundle, with a handler.
    expect(Object.values(sizes).reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(36_200);
    const script = readFileSync(join(out, "worker.js"), "utf8");
    expect(script).not.toMatch(/["'`]node:/);
    expect(script).not.toMatch(/\beval\(|new Function\(/);
  });
});
