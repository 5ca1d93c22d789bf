import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Browser, findChromium, INSTALL, launch, type Page } from "../support/chromium.ts";
import { type Running, serve } from "./process.ts";

const chromium = findChromium();
if (chromium === undefined) {
  console.warn(`!!! THE PAGE IS NOT TESTED: Chromium is not installed: ${INSTALL}`);
}

describe.skipIf(chromium === undefined)("the page, in Chromium", () => {
  let server: Running;
  let browser: Browser;
  let page: Page;
  /** Errors that the page logged or threw. */
  const errors: string[] = [];
  beforeAll(async () => {
    server = await serve({ PORT: "0" });
    browser = await launch(chromium as string);
    page = await browser.newPage();
    page.on("pageerror", (error) => errors.push(`${error}`));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.goto(`${server.url}/`);
    await until(async () => /^\d/.test(await text("value")));
  });
  afterAll(async () => {
    const folder = process.env["TIDEGATE_SCREENSHOTS"];
    if (folder !== undefined && page !== undefined) {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        await page.screenshot({ path: `${folder}/page-${colorScheme}.png`, fullPage: true });
      }
    }
    await browser?.close();
    await server?.stop();
  });

  const text = (id: string): Promise<string> => page.evaluate(`document.getElementById("${id}")?.textContent ?? ""`);
  const count = (): Promise<number> => page.evaluate(`document.querySelectorAll("#log li").length`);
  async function until(true_: () => Promise<boolean>): Promise<void> {
    const end = Date.now() + 20_000;
    while (!(await true_())) {
      if (Date.now() > end) throw new Error(`it did not happen; the page's errors: ${errors.join("\n")}`);
      await sleep(20);
    }
  }

  test("shows the two numbers of your own bucket, full at first", async () => {
    expect([await text("value"), await text("stored"), await text("key")]).toEqual(["20.000", "20", "127.0.0.1"]);
  });

  test("its buttons work from the keyboard; the log has the exact fields", async () => {
    await page.keyboard.press("Tab");
    for (let i = 0; i < 2; i++) await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.dataset.send")).toBe("GET /api/message?cost=15");
    await page.keyboard.press("Enter");
    await until(async () => (await count()) === 1);
    await page.keyboard.press("Enter");
    await until(async () => (await count()) === 2);
    expect(await text("log")).toContain('RateLimit: "message";r=5;t=5');
    const newest = await page.evaluate<string>(`document.querySelector("#log li pre").textContent`);
    expect(newest).toMatch(
      /^RateLimit: "message";r=\d;t=\d\nRateLimit-Policy: "message";q=20;w=20\nRetry-After: \d+\nContent-Type: application\/problem\+json$/,
    );
    expect(await text("last")).toMatch(/^429 GET \/api\/message\?cost=15: "message" has too few tokens left\./);
  });

  test("between two answers it projects what the server would say", async () => {
    const [shown, answer] = await page.evaluate<[string, { value: number; ts: number; now: number }]>(
      `fetch("/api/value").then((r) => r.json()).then((told) => [document.getElementById("value").textContent, told])`,
    );
    // One token a second: a tenth of one for the frame and the way there.
    expect(Math.abs(Number(shown) - answer.value)).toBeLessThan(0.5);
    const before = Number(await text("value"));
    await sleep(300);
    expect(Number(await text("value"))).toBeGreaterThan(before);
  });

  test.each([320, 800, 1600])("nothing is cut off at a width of %i pixels", async (width) => {
    await page.setViewportSize({ width, height: 800 });
    const { scrollWidth, innerWidth } = await page.evaluate<{ scrollWidth: number; innerWidth: number }>(
      "({ scrollWidth: document.documentElement.scrollWidth, innerWidth })",
    );
    expect(scrollWidth).toBeLessThanOrEqual(innerWidth);
  });

  test("nothing failed: no error in the console, nothing refused by its content security policy", () => {
    // A response of 429 is an answer, which Chromium logs as a network error.
    expect(errors.filter((error) => !error.includes("status of 429"))).toEqual([]);
  });
});
