import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findChromium, Page } from "./chromium.ts";
import { type Running, serve } from "./process.ts";

const chromium = findChromium();
if (chromium === undefined) {
  console.warn("!!! THE PAGE IS NOT TESTED: Chromium is not installed (apt-get install chromium)");
}

describe.skipIf(chromium === undefined)("the page, in Chromium", () => {
  let server: Running;
  let page: Page;
  beforeAll(async () => {
    server = await serve({ PORT: "0" });
    page = await Page.open(chromium as string, `${server.url}/`);
    await until(async () => /^\d/.test(await text("value")));
  });
  afterAll(async () => {
    const folder = process.env["TIDEGATE_SCREENSHOTS"];
    if (folder !== undefined && page !== undefined) {
      for (const value of ["light", "dark"]) {
        await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
        writeFileSync(`${folder}/page-${value}.png`, await page.screenshot());
      }
    }
    await page?.close();
    await server?.stop();
  });

  const text = (id: string): Promise<string> => page.evaluate(`document.getElementById("${id}")?.textContent ?? ""`);
  const count = (): Promise<number> => page.evaluate(`document.querySelectorAll("#log li").length`);
  async function until(true_: () => Promise<boolean>): Promise<void> {
    const end = Date.now() + 20_000;
    while (!(await true_())) {
      if (Date.now() > end) throw new Error(`it did not happen; the page's errors: ${page.errors.join("\n")}`);
      await sleep(20);
    }
  }

  test("shows the two numbers of your own bucket, full at first", async () => {
    expect([await text("value"), await text("stored"), await text("key")]).toEqual(["20.000", "20", "127.0.0.1"]);
  });

  test("its buttons work from the keyboard; the log has the exact fields", async () => {
    await page.press("Tab");
    for (let i = 0; i < 2; i++) await page.press("Tab");
    expect(await page.evaluate("document.activeElement.dataset.send")).toBe("GET /api/message?cost=15");
    await page.press("Enter");
    await until(async () => (await count()) === 1);
    await page.press("Enter");
    await until(async () => (await count()) === 2);
    expect(await text("log")).toContain('RateLimit: "message";r=5;t=5');
    const newest = await page.evaluate<string>(`document.querySelector("#log li pre").textContent`);
    expect(newest).toMatch(
      /^RateLimit: "message";r=5;t=5\nRateLimit-Policy: "message";q=20;w=20\nRetry-After: (10|9)\nContent-Type: application\/problem\+json$/,
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
    await page.send("Emulation.setDeviceMetricsOverride", { width, height: 800, deviceScaleFactor: 1, mobile: false });
    const { scrollWidth, innerWidth } = await page.evaluate<{ scrollWidth: number; innerWidth: number }>(
      "({ scrollWidth: document.documentElement.scrollWidth, innerWidth })",
    );
    expect(scrollWidth).toBeLessThanOrEqual(innerWidth);
    await page.send("Emulation.clearDeviceMetricsOverride");
  });

  test("nothing failed: no error in the console, nothing refused by its content security policy", () => {
    // A response of 429 is an answer, which Chromium logs as a network error.
    const errors = page.errors.filter((error) => !/"source":"network".*status of 429/.test(error));
    expect(errors).toEqual([]);
  });
});
