/** One limit for all tabs of an origin, in each browser. */
import { describe, expect, test } from "vitest";
import { browse } from "../../support/site.ts";
import { project } from "../project.ts";
import { inRuntime, replay } from "../runtimes.ts";
import { browsers, type Page, type Profile } from "./browsers.ts";

for (const [name, launch] of browsers) {
  await inRuntime(name, async (program) => {
    const { origin, browser } = await browse(project("browser"), launch(program));
    const open = async (context: Profile): Promise<Page> => {
      const page = await context.newPage();
      await page.goto(`${origin}/page.html`);
      return page;
    };
    const evaluate = <T>(page: Page, call: string): Promise<T> =>
      page.evaluate<T>(`import("/tab.js").then((tab) => tab.${call})`);

    const page = await open(await browser.newContext());
    const results = await page.evaluate<{ name: string; error?: string }[]>(
      `import("/suite.js").then((m) => m.inBrowser())`,
    );
    describe(name, () => {
      describe("the contract of a store", () => replay(results));

      test.each([
        ["take", 100],
        ["takeAll", 60],
      ])("three concurrent tabs take exactly the tokens of the limit (%s)", async (call, there) => {
        const context = await browser.newContext();
        const tabs = await Promise.all([open(context), open(context), open(context)]);
        const granted = await Promise.all(tabs.map((tab) => evaluate<number>(tab, `${call}(50, "together")`)));
        expect(granted.reduce((sum, one) => sum + one, 0)).toBe(there);
        expect(await Promise.all(tabs.map((tab) => evaluate(tab, "left('together')")))).toEqual(
          [1, 2, 3].map(() => 100 - there),
        );
        expect(await evaluate(tabs[0] as Page, "fallbacks()")).toEqual([]);
        await context.close();
      });

      test("a reload keeps the state, and another profile has its own", async () => {
        const context = await browser.newContext();
        const tab = await open(context);
        expect(await evaluate(tab, "take(70, 'kept')")).toBe(70);
        await tab.reload();
        expect(await evaluate(tab, "take(70, 'kept')")).toBe(30);
        await tab.close();
        expect(await evaluate(await open(context), "left('kept')")).toBe(0);
        expect(await evaluate(await open(await browser.newContext()), "left('kept')")).toBe(100);
      });

      test("a database that is deleted while a tab opens it is deleted, and opened again", async () => {
        const context = await browser.newContext();
        const tabs = await Promise.all([open(context), open(context)]);
        expect(await evaluate(tabs[0] as Page, "takeWhileEmptied('gone')")).toEqual(["deleted", 1]);
        for (const tab of tabs) expect(await evaluate(tab, "take(1, 'gone')")).toBe(1);
        expect(await evaluate(tabs[0] as Page, "fallbacks()")).toEqual([]);
        await context.close();
      });

      test("a connection that the browser closed without an event is opened again", async () => {
        const context = await browser.newContext();
        const tab = await open(context);
        expect(await evaluate(tab, "takeAfterLoss(5, 'lost')")).toBe(5);
        expect([await evaluate(tab, "left('lost')"), await evaluate(tab, "fallbacks()")]).toEqual([95, []]);
        await context.close();
      });

      test("a database that does not open again is a failure of the store, until it opens", async () => {
        const context = await browser.newContext();
        const tab = await open(context);
        const [before, degraded, cause, after] = await evaluate<unknown[]>(tab, "takeWhileUnopened('full')");
        expect([before, degraded, after]).toEqual([1, true, 1]);
        expect(cause).toMatch(/no space/);
        expect(await evaluate(tab, "fallbacks()")).toEqual([]);
        await context.close();
      });

      test("where the storage is full, what writes fails, and what only reads does not", async () => {
        const tab = await open(await browser.newContext());
        const [degraded, cause, check, after] = await evaluate<unknown[]>(tab, "takeWhileFull('quota')");
        expect([degraded, check, after]).toEqual([true, undefined, 1]);
        expect(cause).toMatch(/no quota/);
        expect(await evaluate(tab, "fallbacks()")).toEqual([]);
      });

      test("a database that is opened loses the states that have been full for a minute", async () => {
        const tab = await open(await browser.newContext());
        // It is full 50 ms after its call.
        expect(await evaluate(tab, "keptAfter(50_000, 'soon')")).toBe(1);
        expect(await evaluate(tab, "keptAfter(90_000, 'later')")).toBe(0);
      });

      test("calls that three tabs throttle by one limit are spaced as one", async () => {
        const context = await browser.newContext();
        const tabs = await Promise.all([open(context), open(context), open(context)]);
        const began = Date.now();
        const times = await Promise.all(tabs.map((tab) => evaluate<number[]>(tab, "paced(5, 'all')")));
        const sorted = times.flat().sort((a, b) => a - b);
        expect(sorted.length).toBe(15);
        // One token is available, and one refills every 50 ms: no call may run earlier, however late others are.
        for (const [i, time] of sorted.entries()) expect(time).toBeGreaterThanOrEqual(began + i * 50);
        await context.close();
      });

      test("without IndexedDB the limit is the tab's own, and one warning states it", async () => {
        const tab = await open(await browser.newContext());
        await tab.evaluate("void Object.defineProperty(globalThis, 'indexedDB', { value: undefined })");
        expect(await evaluate(tab, "take(70, 'alone')")).toBe(70);
        expect(await evaluate(tab, "take(70, 'alone')")).toBe(30);
        expect(await evaluate(tab, "fallbacks()")).toEqual([
          "tidegate: limits are this tab's own, in memory: there is no IndexedDB",
        ]);
      });
    });
  });
}
