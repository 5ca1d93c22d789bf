import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Browser, inChromium, launch, type Page } from "../support/chromium.ts";
import { type Running, serve } from "./process.ts";

/** Upper bounds for a busy machine, not expectations. */
const PATIENCE = 90_000;

inChromium("the playground, in Chromium", (chromium) => {
  let server: Running;
  let browser: Browser;
  let page: Page;
  /** Errors that the page logged or threw. */
  const errors: string[] = [];
  beforeAll(async () => {
    server = await serve({ PORT: "0" });
    browser = await launch(chromium);
    const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on("pageerror", (error) => errors.push(`${error}`));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.goto(`${server.url}/`);
    await page.locator(".agreement.agree").waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const status = () => page.getByRole("status").textContent();
  /** The number of compared decisions; throws if two differed. */
  async function compared(): Promise<number> {
    const text = (await page.locator(".verdict").textContent()) ?? "";
    if (text.includes("No decisions yet")) return 0;
    const count = /([\d,]+) decisions, identical to the bit/.exec(text)?.[1];
    if (count === undefined) throw new Error(text);
    return Number(count.replaceAll(",", ""));
  }
  async function until(true_: () => Promise<boolean>): Promise<void> {
    const end = Date.now() + PATIENCE;
    while (!(await true_())) {
      if (Date.now() > end) throw new Error(`it did not happen; the page's errors: ${errors.join("\n")}`);
      await sleep(50);
    }
  }

  test("shows a full bucket on both sides", async () => {
    const values = await page.locator(".now b").allTextContents();
    expect(values).toEqual(["20.000", "20.000"]);
    expect(await compared()).toBe(0);
  });

  test("works in a browser whose language is not a language tag, such as C of WebKitGTK", async () => {
    const other = await (await browser.newContext()).newPage();
    await other.addInitScript("Object.defineProperty(navigator, 'language', { value: 'C' })");
    await other.goto(`${server.url}/`);
    await other.locator(".agreement.agree").waitFor({ timeout: PATIENCE });
    await other.context().close();
  });

  test("moving a slider by keys changes the policy in the sentence, in the code, and on the server", async () => {
    const capacity = page.getByRole("slider", { name: "capacity" });
    const answered = page.waitForResponse((response) => response.request().method() === "PUT");
    await capacity.focus();
    await page.keyboard.press("ArrowRight");
    const response = await answered;
    expect((await response.json()).config).toEqual({
      kind: "token bucket",
      rate: 10,
      period: 1000,
      capacity: 21,
      maxReserved: 40,
      shards: 1,
    });
    expect(await capacity.getAttribute("aria-valuetext")).toBe("21 tokens");
    expect(await page.getByRole("heading", { name: "Policy", exact: true }).locator("+ p").textContent()).toContain(
      "at most 21",
    );
    expect(await page.locator(".code pre").textContent()).toContain("capacity: 21");
  });

  test("a burst is granted while tokens last; the rest is denied, the same on both sides", async () => {
    // One token in 30 s: none refills while a slow machine sends.
    await page.getByRole("slider", { name: "rate" }).fill("1");
    await page.getByRole("slider", { name: "period" }).fill("4");
    await page.getByText("1 token every 30 s, evenly").waitFor();
    await button("Reset").click();
    await button("Send a burst of 30").focus();
    await page.keyboard.press("Enter");
    await until(async () => /^21 granted, 9 denied/.test((await status()) ?? ""));
    await until(async () => (await compared()) === 30);
    const rows = await page.locator(".log tbody tr .badge").allTextContents();
    expect(rows.slice(0, 10)).toEqual([...Array(9).fill("429 denied"), "200 granted"]);
  });

  test("while answers are under way, both sides show what they stored at one call", async () => {
    const burst = /^21 granted, 9 denied/;
    const stored = () => page.locator(".side .rows").allTextContents();
    const fresh = (text: string | undefined): boolean => text?.includes("a fresh key is full") === true;
    await button("Reset").click();
    await until(async () => !burst.test((await status()) ?? "") && (await stored()).every(fresh));
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route("**/api/sandbox*", async (route) => {
      await held;
      await route.continue();
    });
    try {
      await button("Send a burst of 30").click();
      await until(async () => burst.test((await status()) ?? ""));
      expect((await stored()).map(fresh)).toEqual([true, true]);
    } finally {
      release();
    }
    await until(async () => (await compared()) === 60);
    await page.unroute("**/api/sandbox*");
    const [here, there] = await stored();
    expect(here).toBe(there);
    expect(fresh(here)).toBe(false);
  });

  test("selecting a decision shows its header fields, and keeps it", async () => {
    await page.locator(".log tbody button").first().click();
    const response = (await page.locator(".response").textContent()) ?? "";
    expect(response).toMatch(/^HTTP\/1\.1 429 Too Many Requests\n/);
    expect(response).toContain('RateLimit: "sandbox";r=0;t=');
    expect(response).toContain('RateLimit-Policy: "sandbox";q=21;w=630');
    expect(response).toMatch(/\nRetry-After: \d+\n/);
    expect(response).toContain("Content-Type: application/problem+json");
    const hold = page.getByRole("checkbox", { name: "Hold the list" });
    expect(await hold.isChecked()).toBe(true);
    await hold.uncheck();
  });

  test.each(["light", "dark"] as const)("axe finds no failure of WCAG 2.2 AA: %s", async (colorScheme) => {
    await page.emulateMedia({ colorScheme });
    // Of the burst: granted and denied, and one selected.
    await page.locator(".log tbody button").first().click();
    await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
    const found = await page.evaluate<string[]>(`axe
      .run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })
      .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + " " + html)))`);
    expect(found).toEqual([]);
    await page.getByRole("checkbox", { name: "Hold the list" }).uncheck();
  });

  test("compared at one instant, both sides have the same bits", async () => {
    await button("Compare now").click();
    const pair = page.locator(".pair");
    await pair.waitFor();
    const [here, there] = await pair.locator("code").allTextContents();
    expect(here).toMatch(/^[0-9a-f]{16}$/);
    expect(there).toBe(here);
    expect(await pair.getAttribute("data-same")).toBe("true");
  });

  test("each scenario runs, and both sides agree on every decision", async () => {
    const titles = await page.locator(".scenarios button").allTextContents();
    expect(titles).toHaveLength(7);
    for (const title of titles) {
      const before = await compared();
      await button(title).click();
      await until(async () => (await compared()) >= before + 12);
    }
    await page.getByRole("radio", { name: "none" }).check();
    await until(async () => !(await page.locator(".agreement").textContent())?.includes("under way"));
    const values = await page.locator(".side .rows").allTextContents();
    expect(values[0]).toBe(values[1]);
  });

  test("a debt is shown below zero, with the time at which it is repaid", async () => {
    await button("Debt and reservation").click();
    await page.getByRole("radio", { name: "none" }).check();
    await button("Reset").click();
    await button("Send a burst of 30").click();
    await page.locator(".log .badge.reserved").first().waitFor();
    await until(async () => (await page.locator(".log tbody .badge").first().textContent()) === "202 reserved");
  });

  test("the code of each store is copied as shown", async () => {
    for (const store of ["Redis", "Memory"]) {
      await page.getByRole("radio", { name: store }).check();
      await button("Copy").click();
      await button("Copied").waitFor();
      const copied = await page.evaluate<string>("navigator.clipboard.readText()");
      expect(copied).toBe(await page.locator(".code pre").textContent());
      expect(copied).toContain('kind: "token bucket"');
    }
    await page.getByRole("radio", { name: "File" }).check();
    await page.getByRole("radio", { name: "Fastify" }).check();
    const text = await page.locator(".code pre").textContent();
    expect(text).toContain('store: file("./limits")');
    expect(text).toContain("app.addHook(");
  });

  test("every control has a name, and can be reached by keys", async () => {
    const nameless = await page.evaluate<string[]>(`
      [...document.querySelectorAll("input, button")]
        .filter((it) => !(it.labels?.length > 0) && !it.textContent.trim() && !it.ariaLabel)
        .map((it) => it.outerHTML)`);
    expect(nameless).toEqual([]);
    const lost = await page.evaluate<string[]>(`
      [...document.querySelectorAll("input, button")].filter((it) => it.tabIndex < 0).map((it) => it.outerHTML)`);
    expect(lost).toEqual([]);
    expect(await page.locator("h1").count()).toBe(1);
  });

  test.each([320, 800, 1600])("nothing overflows at a width of %i pixels, light or dark", async (width) => {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: colorScheme === "dark" ? "reduce" : "no-preference" });
      const { scrollWidth, innerWidth } = await page.evaluate<{ scrollWidth: number; innerWidth: number }>(
        "({ scrollWidth: document.documentElement.scrollWidth, innerWidth })",
      );
      expect(scrollWidth).toBeLessThanOrEqual(innerWidth);
      const folder = process.env["TIDEGATE_SCREENSHOTS"];
      if (folder !== undefined)
        await page.screenshot({ path: `${folder}/playground-${width}-${colorScheme}.png`, fullPage: true });
    }
  });

  test("no error in the console, and nothing refused by the content security policy", () => {
    // Chromium logs a response of 429 as a network error.
    expect(errors.filter((error) => !error.includes("status of 429"))).toEqual([]);
  });

  test("a stopped server is reported on the page, which starts again when the server is back", async () => {
    const { port } = new URL(server.url);
    await server.stop();
    await button("Send one").click();
    await page.locator(".agreement.away").waitFor();
    server = await serve({ PORT: port });
    if (new URL(server.url).port !== port) return; // another process took the port, so the server cannot come back
    await page.locator(".agreement.agree").waitFor();
    const before = await compared();
    await button("Send one").click();
    await until(async () => (await compared()) === before + 1);
  });
});
