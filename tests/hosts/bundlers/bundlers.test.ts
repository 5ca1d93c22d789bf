/** The packed tarball through widely used bundlers, and their output in Chromium. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { launch } from "../../support/chromium.ts";
import { browse } from "../../support/site.ts";
import { output, root } from "../../packaging/installed.ts";
import { project } from "../project.ts";
import { inRuntime } from "../runtimes.ts";
import { BUNDLERS, viteForWorkers, webpackForNode } from "./bundlers.ts";

await inRuntime("bundlers", () =>
  inRuntime("chromium", async (program) => {
    const user = project("bundlers");
    const { origin, browser } = await browse(user, launch(program));

    describe.each(Object.entries(BUNDLERS))("%s", (name, bundle) => {
      test("bundles the package without configuration, and its output decides on a page", async () => {
        const folder = `built-${name.replace(" ", "-")}`;
        const out = join(user.folder, folder);
        mkdirSync(out);
        await bundle(user.folder, out);
        writeFileSync(join(out, "page.html"), '<!doctype html><script type="module" src="built.js"></script>');
        const page = await browser.newPage();
        const errors: string[] = [];
        page.on("pageerror", (error) => errors.push(`${error}`));
        await page.goto(`${origin}/${folder}/page.html`);
        expect(errors).toEqual([]);
        expect(await page.evaluate("globalThis.answers")).toBe("[true,true,false,true]");
        await page.close();
      });
    });
  }),
);

await inRuntime("bundlers", () => {
  const user = project("bundlers");
  test("webpack 5 for Node.js: it contains the engine once, and webpack warns of nothing", async () => {
    const out = join(user.folder, "built-node");
    expect(await webpackForNode(user.folder, out)).toBe("");
    const modules = readFileSync(join(out, "built.cjs"), "utf8").match(/AGFzbQ/g);
    expect(modules).toHaveLength(1);
  });

  test.each(["vite7", "vite8"])("%s, a Worker whose build reads no wasm: the alias of the guide", async (vite) => {
    const out = join(user.folder, `built-worker-${vite}`);
    const page = readFileSync(join(root, "npm/site/start/workers.md"), "utf8");
    const [, name = "", file = ""] = /"(#engine-host)": fileURLToPath\(new URL\("([^"]+)"/.exec(page) ?? [];
    await viteForWorkers(vite, user.folder, out, { [name]: join(user.folder, "node_modules/tidegate/dist", file) });
    expect(output("node", ["-e", "import('./built.js').then(() => console.log(answers))"], { cwd: out }).trim()).toBe(
      "[true,true,false,true]",
    );
  });
});
