/** The built package: mounted as the guide does, and the page in real Chromium. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import { defineLimits } from "tidegate";
import { createConsole } from "tidegate-console";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Browser, inChromium, launch, type Page } from "../support/chromium.ts";
import { type App, startApp } from "./app.ts";

/** Upper bound for a busy machine, not an expectation. */
const PATIENCE = 60_000;

test("mounted in Express, at a path and behind its body parser, the page and its operations work", async () => {
  const { fetch } = createConsole(defineLimits({ api: { kind: "fixed window", rate: 5, period: "1h" } }), {
    authorize: ({ headers }) => headers.get("authorization") === "Bearer admin",
  });
  const app = express();
  app.use("/admin/limits", getRequestListener(fetch));
  app.use(express.json());
  const server = createServer(app).listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/admin/limits`;
  const headers = { authorization: "Bearer admin" };
  expect((await globalThis.fetch(url)).status).toBe(403);
  expect(await (await globalThis.fetch(url, { headers })).text()).toMatch(/^<!doctype html>/);
  const body = JSON.stringify({ operation: "charge", name: "api", key: "ann", count: 7 });
  const post = (origin: string) =>
    globalThis.fetch(url, {
      method: "POST",
      body,
      headers: { ...headers, origin, "content-type": "application/json" },
    });
  expect((await post("http://evil.example")).status).toBe(403);
  expect(await (await post(new URL(url).origin)).json()).toMatchObject({ value: -2, capacity: 5 });
  server.close();
  server.closeAllConnections();
});

test("the page is loaded with the first request for it, and not by servers that only count", () => {
  const dist = createRequire(import.meta.url)
    .resolve("tidegate-console")
    .replace(/index\.js$/, "");
  const index = readFileSync(`${dist}index.js`, "utf8");
  expect(index).toMatch(/await import\("\.\/generated\/page\.js"\)/);
  expect(index).not.toMatch(/from "\.\/generated/);
});

inChromium("the page, in Chromium", thePage);

const IMAGE = "<img src=x onerror=document.title='attacked'>";
const DISGUISED = "\u202egnp.exe\u0000\u200b";

function thePage(path: string): void {
  let app: App;
  let browser: Browser;
  let page: Page;
  let isAllowed = true;
  /** Errors that the page logged or threw, and requests to anything but the app. */
  const errors: string[] = [];
  const foreign: string[] = [];
  beforeAll(async () => {
    app = await startApp({ authorize: () => isAllowed });
    browser = await launch(path);
    page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on("pageerror", (error) => errors.push(`${error}`));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("request", (request) => {
      if (!request.url().startsWith(`${app.url}`) && !request.url().startsWith("data:")) foreign.push(request.url());
    });
    await page.goto(app.url);
    await page.getByText("live", { exact: true }).waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    app?.close();
  });

  const card = (name: string) => page.locator(".card", { has: page.getByRole("heading", { name, exact: true }) });
  const top = () => page.getByRole("region", { name: "Most denied keys" });
  const log = () => page.getByRole("region", { name: "Denials", exact: true });
  const one = () => page.getByRole("region", { name: "One key" });
  const status = () => page.getByRole("status").textContent();

  /** Presses Tab until the control with this accessible name has the focus. */
  async function tabTo(name: string): Promise<void> {
    for (let i = 0; i < 100; i++) {
      await page.keyboard.press("Tab");
      const focused = await page.evaluate<string>(
        "(({ labels, textContent }) => (labels?.[0] ?? { textContent }).textContent.trim())(document.activeElement)",
      );
      if (focused === name) return;
    }
    throw new Error(`no control ${name} was reached by Tab`);
  }

  test("lists every limit, those without requests too", async () => {
    const names = await page.locator(".card h3").allTextContents();
    expect(names).toEqual(["api", "login", "uploads", "search"]);
    await card("search").getByText("no requests yet").waitFor();
  });

  test("denials appear: in the limit's counts, its chart, the list of keys and the log", async () => {
    for (let i = 0; i < 8; i++) app.limits.limit("login", { key: "203.0.113.9" });
    await card("login").getByRole("img", { name: "login: 5 granted and 3 denied in the last 10 minutes" }).waitFor();
    await card("login").getByText("fixed window: 5 per 15 min").waitFor();
    await card("login").getByText("By minute").click();
    const latest = card("login").getByRole("row").nth(1).getByRole("cell");
    expect((await latest.allTextContents()).map(Number).reduce((sum, count) => sum + count)).toBeGreaterThan(0);
    await card("login").getByText("By minute").click();
    const row = top().getByRole("row").nth(1);
    expect(await row.allTextContents()).toEqual(["203.0.113.9, show its statelogin3"]);
    expect(await log().getByRole("row").count()).toBe(4);
    // Bars in the colour of denials, at the chart's end.
    const pixels = await card("login")
      .locator("canvas")
      .evaluate((canvas: HTMLCanvasElement): number => {
        const { data } = (canvas.getContext("2d") as CanvasRenderingContext2D).getImageData(
          0,
          0,
          canvas.width,
          canvas.height,
        );
        let red = 0;
        for (let i = 0; i < data.length; i += 4) if ((data[i] as number) > (data[i + 1] as number) + 80) red++;
        return red;
      });
    expect(pixels).toBeGreaterThan(0);
  });

  test("by keyboard alone a key is looked up, and reset", async () => {
    await page.locator("body").focus();
    await tabTo("Limit");
    await page.keyboard.type("login");
    await tabTo("Tokens");
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("2");
    await tabTo("Key");
    await page.keyboard.type("203.0.113.9");
    await page.keyboard.press("Enter");
    await one().getByText("next grant of 2 tokens").waitFor();
    await one()
      .getByText(/^in \d+ min \d+ s, at /)
      .first()
      .waitFor();
    expect(await status()).toMatch(/^0 of 5 tokens\. 2 tokens granted: in \d+ min \d+ s, at /);
    await tabTo("Reset");
    await page.keyboard.press("Enter");
    await page.getByText("Reset: 5 of 5 tokens.", { exact: true }).waitFor({ state: "attached" });
    expect(await one().locator(".ok").textContent()).toBe("now");
    expect(app.limits.check("login", { key: "203.0.113.9", count: 5 }).ok).toBe(true);
    await tabTo("Charge 2 tokens");
    await page.keyboard.press("Enter");
    await page.getByText("Charged 2 tokens: 3 of 5 tokens.", { exact: true }).waitFor({ state: "attached" });
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByText("Gave 2 tokens: 5 of 5 tokens.", { exact: true }).waitFor({ state: "attached" });
  });

  test("by keyboard alone the key is blocked for a time, and reset", async () => {
    await tabTo("Block for");
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("1h");
    await page.keyboard.press("Enter");
    await page.getByText(/^Blocked for 1h: -\d+ of 5 tokens\.$/).waitFor({ state: "attached" });
    expect(app.limits.check("login", { key: "203.0.113.9" }).retryAfter).toBeGreaterThan(3_500_000);
    await one().getByRole("button", { name: "Reset" }).click();
    await page.getByText("Reset: 5 of 5 tokens.", { exact: true }).waitFor({ state: "attached" });
  });

  test("the state of a key follows other requests", async () => {
    app.limits.limit("login", { key: "203.0.113.9", count: 4 });
    await one().locator("b", { hasText: /^1$/ }).waitFor();
  });

  test("a key that is markup or invisible is text, and the focus moves to its state", async () => {
    for (const key of [IMAGE, DISGUISED, "k".repeat(1000)]) app.limits.limit("uploads", { key, count: 251 });
    const before = await page.evaluate("document.images.length");
    await log().getByText(IMAGE).waitFor();
    await log().getByText("\\u{202e}gnp.exe\\u{0}\\u{200b}", { exact: true }).waitFor();
    expect(await page.title()).toBe("Tidegate console");
    expect(await page.evaluate("document.images.length")).toBe(before);
    await log().getByRole("button", { name: "gnp.exe" }).click();
    await one().getByText("now", { exact: true }).first().waitFor();
    expect(await page.evaluate<string>("document.activeElement.textContent")).toBe(
      "uploads \\u{202e}gnp.exe\\u{0}\\u{200b}",
    );
    expect(await one().getByLabel("Key").inputValue()).toBe("\\u{202e}gnp.exe\\u{0}\\u{200b}");
    await one().getByRole("button", { name: "Charge 1 token" }).click();
    await page.getByText("Charged 1 token: 249 of 250 tokens.", { exact: true }).waitFor({ state: "attached" });
    expect(app.limits.check("uploads", { key: DISGUISED, count: 0 }).remaining).toBe(249);
  });

  test("the log can be paused; what came meanwhile is counted", async () => {
    const pause = log().getByRole("button", { name: "Pause" });
    await pause.click();
    expect(await pause.getAttribute("aria-pressed")).toBe("true");
    const rows = await log().getByRole("row").count();
    for (let i = 0; i < 4; i++) app.limits.limit("uploads", { key: "late", count: 251 });
    await log().getByText("4 more are not in this list.").waitFor();
    expect(await log().getByRole("row").count()).toBe(rows);
    await pause.click();
    app.limits.limit("uploads", { key: "later", count: 251 });
    await log().getByText("later").waitFor();
  });

  test("what an operation answers after another key was picked is not shown as the state of that key", async () => {
    app.limits.limit("login", { key: "slow", count: 6 });
    await top().getByRole("button", { name: "slow" }).click();
    await one().locator("b", { hasText: /^5$/ }).waitFor();
    let answer = (): void => {};
    const answered = new Promise<void>((done) => (answer = done));
    await page.route(app.url, async (route) => {
      if (route.request().postData()?.includes('"charge"') === true) await answered;
      await route.continue();
    });
    await one().getByRole("button", { name: "Charge 1 token" }).click();
    await top().getByRole("button", { name: "203.0.113.9" }).click();
    await one().locator("b", { hasText: /^1$/ }).waitFor();
    answer();
    await page.getByText("Charged 1 token: 4 of 5 tokens.", { exact: true }).waitFor({ state: "attached" });
    expect(await one().locator("b").textContent()).toBe("1");
    await page.unroute(app.url);
  });

  test("a mistake is shown with the limiter's message", async () => {
    await one().getByLabel("Key").fill("k".repeat(1025));
    await page.keyboard.press("Enter");
    expect(await one().getByRole("alert").textContent()).toMatch(/^`key` must be/);
    await top().getByRole("button", { name: "203.0.113.9" }).click();
    await one().getByText("value now").waitFor();
  });

  test.each(["light", "dark"] as const)(
    "axe finds nothing, and nothing overflows or overlaps: %s",
    async (colorScheme) => {
      const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
      await page.emulateMedia({ colorScheme });
      for (const width of [320, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        await page.evaluate(axe);
        const violations = await page.evaluate<{ id: string; nodes: { html: string; failureSummary: string }[] }[]>(
          "axe.run(document).then(({ violations }) => violations)",
        );
        const found = violations.flatMap(({ id, nodes }) =>
          nodes.map(({ html, failureSummary }) => [id, html, failureSummary]),
        );
        expect(found).toEqual([]);
        const [content, window] = await page.evaluate<[number, number]>(
          "[document.documentElement.scrollWidth, innerWidth]",
        );
        expect(content).toBeLessThanOrEqual(window);
        const [rows, list] = await page.evaluate<[number, number]>(
          "(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])(document.querySelector('.scroll'))",
        );
        expect(rows).toBeLessThanOrEqual(list);
        await page.setViewportSize({ width, height: 500 });
        const gap = await page.evaluate<number>(
          `scrollTo(0, document.documentElement.scrollHeight);
        document.querySelector(".log").getBoundingClientRect().top - document.querySelector(".one").getBoundingClientRect().bottom`,
        );
        expect(gap, "the log is below the key, and not under it").toBeGreaterThan(0);
        const folder = process.env["TIDEGATE_SCREENSHOTS"];
        if (folder === undefined) continue;
        await page.screenshot({ path: `${folder}/console-${width}-${colorScheme}.png`, fullPage: true });
      }
    },
  );

  test("nothing was requested elsewhere, and nothing refused by the content security policy", () => {
    expect(foreign).toEqual([]);
    // The mistake above: Chromium logs a response of 400.
    expect(errors.filter((error) => !error.includes("status of 400"))).toEqual([]);
  });

  test("works in a browser whose language is not a language tag, such as C of WebKitGTK", async () => {
    const other = await (await browser.newContext()).newPage();
    await other.addInitScript("Object.defineProperty(navigator, 'language', { value: 'C' })");
    await other.goto(app.url);
    await other.getByText("live", { exact: true }).waitFor({ timeout: PATIENCE });
    await other.context().close();
  });

  test("a page whose authorization ends reports it, and continues when it is back", async () => {
    isAllowed = false;
    await one().getByText("You may not use this console.").waitFor();
    // The stream ends after 30 s, and is then refused.
    await page.getByText("refused by the server; trying again").waitFor();
    isAllowed = true;
    await page.getByText("live", { exact: true }).waitFor();
    await one().getByRole("alert").waitFor({ state: "detached" });
    // The log is that of a page that is loaded now: no denial is there twice.
    const fresh = await page.context().newPage();
    await fresh.goto(app.url);
    const rows = fresh.getByRole("region", { name: "Denials", exact: true }).getByRole("row");
    await rows.nth(1).waitFor();
    const all = await rows.allTextContents();
    await expect.poll(() => log().getByRole("row").allTextContents(), { timeout: PATIENCE }).toEqual(all);
    await fresh.close();
  });

  test("a page whose server ends reports it, and continues with the next one, which is no second process", async () => {
    const first = await startApp();
    const other = await (await browser.newContext()).newPage();
    other.setDefaultTimeout(PATIENCE);
    await other.goto(first.url);
    await other.getByText("live", { exact: true }).waitFor();
    first.close();
    await other.getByText("no connection; trying again").waitFor();
    const next = await startApp(undefined, Number(new URL(first.url).port));
    await other.getByText("live", { exact: true }).waitFor();
    expect(await other.getByText("Several processes answer").count()).toBe(0);
    next.close();
    await other.close();
  });
}
