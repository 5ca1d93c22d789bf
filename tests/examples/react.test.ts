import { afterAll, beforeAll, expect, test } from "vitest";
import { type Browser, inChromium, launch, type Page } from "../support/chromium.ts";
import { type Example, example } from "./example.ts";

inChromium("the example for React, in Chromium", (chromium) => {
  let server: Example;
  let browser: Browser;
  let page: Page;
  const requests: string[] = [];
  const errors: string[] = [];

  beforeAll(async () => {
    server = await example("react/server.mjs");
    browser = await launch(chromium);
    page = await browser.newPage();
    page.on("pageerror", (error) => errors.push(`${error}`));
    page.on("request", (request) => requests.push(`${request.method()} ${new URL(request.url()).pathname}`));
    await page.goto(server.url, { waitUntil: "networkidle" });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  test("the button is disabled once the server would deny, and enabled again without a request", async () => {
    const button = page.locator("button");
    // Three, plus what refilled on a slow machine.
    for (let sent = 0; (await button.isEnabled()) && sent < 100; sent++) {
      const answered = page.waitForResponse((response) => response.url().endsWith("/messages"));
      await button.click();
      await answered;
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    }
    const before = requests.length;
    await page.locator("button:enabled", { hasText: /^Send$/ }).waitFor();
    expect(requests.length).toBe(before);
    expect(requests.filter((what) => what === "POST /messages").length).toBeGreaterThanOrEqual(3);
    expect(errors).toEqual([]);
  });
});
