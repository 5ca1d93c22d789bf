/** The engine in browsers, on a plain page with an import map, and under content security policies. */
import { describe, expect, test } from "vitest";
import { browse } from "../../support/site.ts";
import { project } from "../project.ts";
import { inRuntime, replay } from "../runtimes.ts";
import { browsers } from "./browsers.ts";

const INLINE = "script-src 'self' 'unsafe-inline'";
for (const [name, launch] of browsers) {
  await inRuntime(name, async (program) => {
    const { origin, browser } = await browse(project("browser"), launch(program));
    const open = async (path: string) => {
      const page = await (await browser.newContext()).newPage();
      await page.goto(origin + path);
      return page;
    };
    /** The page's result under this policy. */
    const under = async (csp: string) => {
      const page = await open(`/page.html?csp=${encodeURIComponent(csp)}`);
      return page.evaluate<string>("document.body.dataset.result");
    };

    const page = await open("/page.html");
    const results = await page.evaluate<{ name: string; error?: string }[]>(
      `import("/memory.js").then((m) => m.inMemory())`,
    );
    describe(`${name}: in memory, on a plain page`, () => replay(results));

    test(`${name} runs under a content security policy with 'wasm-unsafe-eval'`, async () => {
      expect(await under(`${INLINE} 'wasm-unsafe-eval'`)).toBe("[true,true,false]");
    });

    test(`${name}: without it, the error names the remedy`, async () => {
      expect(await under(INLINE)).toMatch(
        /^Error: WebAssembly is not allowed here: add 'wasm-unsafe-eval' to `script-src`/,
      );
    });

    test(`${name}: without it, a fetch that waits reports that before it sends, not once the server has little left`, async () => {
      const strict = await open(`/page.html?csp=${encodeURIComponent(INLINE)}`);
      const { sent, result } = JSON.parse(
        await strict.evaluate<string>(`import("/fetches.js").then((m) => m.first())`),
      );
      expect(result).toMatch(/^Error: WebAssembly is not allowed here/);
      expect(sent).toBe(0);
    });
  });
}
