/** The built site in Chromium, offline. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Browser, inChromium, launch, type Page } from "../support/chromium.ts";
import { pages } from "./pages.ts";
import { serve } from "./served.ts";

/** Upper bounds for a busy machine, not expectations. */
const PATIENCE = 90_000;
const paths = pages.map(({ path }) => path.replace("npm/site/", "/").replace(/\.md$/, ".html"));

inChromium("in Chromium", (chromium) => {
  let site: Awaited<ReturnType<typeof serve>>;
  let browser: Browser;
  let page: Page;
  const errors: string[] = [];
  beforeAll(async () => {
    site = await serve();
    browser = await launch(chromium);
    page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on("pageerror", (error) => errors.push(`${page.url()}: ${error}`));
    page.on("console", (message) => message.type() === "error" && errors.push(`${page.url()}: ${message.text()}`));
    page.on("request", (request) => request.url().startsWith(site.url) || errors.push(`request to ${request.url()}`));
  });
  afterAll(async () => {
    await browser?.close();
    site?.close();
  });

  test.each([
    [360, 740],
    [1280, 900],
  ])("nothing is wider than the window, at %i by %i, light or dark", async (width, height) => {
    await page.setViewportSize({ width, height });
    // Every page on a phone; one page of each template on a desktop.
    const looked = width < 1000 ? paths : ["/index.html", "/guide/algebra.html", "/stores/index.html"];
    for (const path of [...looked, "/api/index.html", "/api/tidegate/redis.html", "/api/tidegate/client.html"]) {
      await page.emulateMedia({ colorScheme: width > 1000 ? "light" : "dark" });
      await page.goto(site.url + path);
      const wide = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      expect(wide, path).toBeLessThanOrEqual(0);
      const cut = await page.evaluate<string[]>(
        `[...document.querySelectorAll(".vp-doc pre")].filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.textContent)`,
      );
      expect(cut, `${path}: lines of code that are cut`).toEqual([]);
      const folder = process.env["TIDEGATE_SCREENSHOTS"];
      if (folder !== undefined) {
        await page.screenshot({ path: `${folder}/site-${width}${path.replaceAll("/", "-").replace(".html", "")}.png` });
      }
    }
  });

  test.each(["light", "dark"] as const)("axe finds no failure of WCAG 2.2 AA: %s", async (colorScheme) => {
    const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 1280, height: 900 });
    // One page of each template, and each language of code.
    for (const path of ["/index.html", "/stores/postgres.html", "/stores/redis.html", "/api/tidegate/redis.html"]) {
      await page.goto(site.url + path);
      await page.evaluate(axe);
      // VitePress's search button shows its keys, which are no part of its name.
      const found = await page.evaluate<string[]>(`axe
        .run({ exclude: ".DocSearch" }, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })
        .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + " " + html)))`);
      expect(found, path).toEqual([]);
    }
  });

  test("the first screen states what the package is, and shows all twelve lines of code", async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${site.url}/`);
    for (const it of [page.locator("h1"), page.locator(".pitch ul"), page.locator(".code .line").nth(11)]) {
      const box = await it.boundingBox();
      expect((box?.y ?? Infinity) + (box?.height ?? 0)).toBeLessThanOrEqual(800);
    }
  });

  test("the search finds pages, offline", async () => {
    await page.goto(`${site.url}/stores/index.html`);
    await page.locator(".VPNavBarSearchButton, .DocSearch-Button").first().click();
    await page.locator("#localsearch-input").fill("jitter");
    await page.locator(".VPLocalSearchBox .result").first().waitFor();
    const hrefs = await page.locator(".VPLocalSearchBox .result").evaluateAll((them) => them.map((it) => `${it}`));
    expect(hrefs.some((href) => href.includes("/guide/http"))).toBe(true);
    expect(hrefs[0]).not.toContain("/api/");
  });

  test("the playground decides in the page, without a server", async () => {
    await page.goto(`${site.url}/guide/algebra.html`);
    const frame = page.frameLocator("iframe.playground");
    // One token in 30 s: none refills while a slow machine sends.
    await frame.getByRole("slider", { name: "rate" }).fill("1");
    await frame.getByRole("slider", { name: "period" }).fill("4");
    await frame.getByRole("button", { name: "Send a burst of 30", exact: true }).click();
    await frame.locator(".log tbody tr").first().waitFor();
    await frame.locator(".log .badge", { hasText: "429 denied" }).first().waitFor();
    expect(await frame.locator(".side").count()).toBe(1);
  });

  test("no error, and no request to another host", async () => {
    // Of the pages above too, where they have run.
    await page.goto(`${site.url}/`);
    expect(errors).toEqual([]);
  });
});
