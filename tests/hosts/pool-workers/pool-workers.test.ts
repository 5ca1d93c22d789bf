/** A user's own tests, in Cloudflare's runner inside workerd: a strict TypeScript project with nothing but the tarball. */
import { cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { forTests, install, output, root } from "../../packaging/installed.ts";
import { inRuntime } from "../runtimes.ts";
import { QUIET } from "../workerd/server.ts";

const here = fileURLToPath(new URL("./", import.meta.url));
const modules = join(here, "node_modules");

await inRuntime("pool-workers", (vitest) => {
  const user = forTests(install());
  const run = (args: string[]): string =>
    output(process.execPath, args, { cwd: user.folder, env: { ...process.env, ...QUIET, NO_COLOR: "1" } });

  cpSync(join(here, "user"), user.folder, { recursive: true });
  for (const name of ["vitest", "@cloudflare"]) {
    const place = join(user.folder, "node_modules", name);
    mkdirSync(join(place, ".."), { recursive: true });
    if (!existsSync(place)) symlinkSync(join(modules, name), place, "junction");
  }

  test("compiles strictly against the types that wrangler generates", () => {
    // By the wrangler of the other tests: the one beside the runner requires Node.js 22.
    run([join(here, "../node_modules/wrangler/bin/wrangler.js"), "types"]);
    expect(run([join(root, "node_modules/typescript-7/bin/tsc"), "--project", "tsconfig.json"])).toBe("");
  });

  test("parallel.spec.ts and alarm.spec.ts pass", () => {
    const printed = run([vitest, "run"]);
    expect(printed).toMatch(/^ *Test Files +2 passed \(2\)$/m);
    expect(printed).toMatch(/^ *Tests +\d+ passed \(\d+\)$/m);
  }, 900_000);
});
