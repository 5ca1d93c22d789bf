import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { start } from "../support/processes.ts";
import { packageSuite } from "./package-suite.ts";
import { forTests, install } from "./installed.ts";

const user = forTests(install());
const bin = join(user.folder, "node_modules/tidegate/dist/cli/bin.js");
/** What `tidegate serve` printed before the package was installed. */
const without = spawnSync(process.execPath, [bin, "serve"], { cwd: user.folder, encoding: "utf8" }).stderr;
user.add(user.tarball, user.serve.tarball);
const manifest = user.manifest("tidegate-serve");

describe("the tarball of tidegate-serve", () => {
  packageSuite(user.serve, manifest, {
    others: ["dist/bundled.json"],
    contains: ["dist/bin.js", "dist/cli.js", "dist/cli.d.ts"],
    linked: ["hono", "ioredis", "pg", "prom-client", "zod"],
  });

  test("depends on tidegate of its own version alone", () => {
    expect(manifest["dependencies"]).toEqual({ tidegate: manifest["version"] });
    const peers = ["@grpc/grpc-js", "tidegate-console"];
    const all = (value: unknown) => Object.fromEntries(peers.map((name) => [name, value]));
    expect(manifest["peerDependencies"]).toEqual(all(expect.any(String)));
    expect(manifest["peerDependenciesMeta"]).toEqual(all({ optional: true }));
  });

  test("`tidegate serve` names the package where it is not installed, and is the same program where it is", async () => {
    expect(without).toBe(
      "tidegate: serve is the package tidegate-serve, which is not installed: npm install tidegate-serve\n",
    );
    const rule = { name: "all", limit_keys: [], algorithm: "token_bucket", algorithm_config: { rps: 1, burst: 1 } };
    user.write("policies.json", JSON.stringify({ rules: [rule] }));
    for (const program of [[bin, "serve"], [join(user.folder, "node_modules/tidegate-serve/dist/bin.js")]]) {
      const args = [...program, "policies.json", "--port", "0"];
      const service = await start(process.execPath, args, /"event":"started".*\n/, { cwd: user.folder });
      const { url } = JSON.parse(service.output()) as { url: string };
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${url}/v1/decide`, { method: "POST", headers, body: '{"name":"all"}' });
      expect(await response.json()).toMatchObject({ ok: true, remaining: 0 });
      await service.stop();
    }
  });
});
