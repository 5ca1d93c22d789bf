import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type Config, evaluate, MINUTE, SECOND } from "../../npm/tidegate/src/index.ts";
import type { ServerState } from "../../npm/tidegate/src/react/remote.ts";
import { type Browser, inChromium, launch, type Page } from "../support/chromium.ts";
import type { Field, ShownProps } from "./app.tsx";
import { bundle, imported, VERSIONS } from "./bundle.ts";

const config: Config = { kind: "token bucket", rate: 20, period: MINUTE, capacity: 5 };
/** The server's clock; the page's is an hour behind. */
const SERVER = 1_735_689_600_000;
const PAGE = SERVER - 3_600_000;

interface Server {
  render(all: readonly ShownProps[]): string;
}

interface Window {
  renders: Record<string, number>;
  errors: string[];
  answers: ServerState[];
  show(all: readonly ShownProps[]): void;
  send(): void;
  inside(): void;
  hydrate(all: readonly ShownProps[]): void;
}
declare const window: Window;

/** An empty bucket that gains one token every three seconds, as the server returns it. */
const empty: ServerState = { value: 0, ts: SERVER, config, now: SERVER };

describe.each(VERSIONS)("with React %s", (version, alias) => {
  let made: Promise<Server> | undefined;
  const rendered = async (all: readonly ShownProps[]): Promise<string> => {
    made ??= imported<Server>("server.tsx", version, alias);
    return (await made).render(all);
  };

  test("on a server it renders the initial state, the same every time, and sends no request", async () => {
    const fields = ["ok", "remaining", "retryAfter", "retryAt"] as const;
    const html = await rendered([{ fields, initial: empty, tick: 1000 }]);
    expect(html).toContain(`false 0 3000 ${SERVER + 3000}`);
    expect(await rendered([{ fields, initial: empty, tick: 1000 }])).toBe(html);
    expect(await rendered([{ fields }])).toContain("undefined undefined undefined undefined");
  });

  test.each([
    [{ from: {} }, "`from` must be what remoteLimits returned outside of components"],
    [{ count: Number.NaN }, "`count` must be a finite number of tokens"],
    [{ tick: 1 }, '`tick` must be a number of ms from 10 to 3600000, or a string such as "30s"; got 1'],
    [{ reserve: 1 }, "`reserve` must be true or false"],
    [{ cuont: 1 }, "`cuont` must be absent: useRateLimit has"],
    [{ initial: { ...empty, ts: Number.NaN } }, "`ts` must be"],
  ])("an invalid option, %j, throws when it renders", async (wrong, message) => {
    await expect(rendered([{ fields: ["ok"], ...(wrong as object) }])).rejects.toThrow(message);
  });

  inChromium("in Chromium", (chromium) => {
    let browser: Browser;
    let page: Page;
    let script: string;
    let answer: ServerState;
    let requests: number;
    const complaints: string[] = [];

    beforeAll(async () => {
      script = await bundle("page.tsx", alias, "iife");
      browser = await launch(chromium);
    });
    afterAll(() => browser?.close());

    /** A page with a clock that stands, in which the server has rendered so much. */
    async function open(html = "", policy = "script-src 'self' 'wasm-unsafe-eval'"): Promise<void> {
      await page?.close();
      page = await browser.newPage();
      complaints.length = 0;
      page.on("pageerror", (error) => complaints.push(`${error}`));
      page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
      await page.route("**/*", (route) => {
        const { pathname } = new URL(route.request().url());
        if (pathname === "/script.js") return route.fulfill({ contentType: "text/javascript", body: script });
        if (pathname === "/messages") return take().then(() => route.fulfill({ status: 204 }));
        if (pathname === "/limits/message") {
          requests++;
          return route.fulfill({ json: answer });
        }
        const body = `<!doctype html><link rel="icon" href="data:,"><main>${html}</main><script src="/script.js"></script>`;
        return route.fulfill({ contentType: "text/html", headers: { "content-security-policy": policy }, body });
      });
      await page.clock.install({ time: PAGE - 3_600_000 });
      await page.goto("http://tidegate.test/");
      await page.clock.pauseAt(PAGE);
    }
    /** Takes a token on the server. */
    async function take(): Promise<void> {
      const state = evaluate(answer, config, { now: answer.now }).state ?? answer;
      answer = { ...answer, ...state };
    }
    const shows = (selector: string, text: string): Promise<unknown> =>
      page.locator(selector, { hasText: new RegExp(`^${text}$`) }).waitFor({ state: "attached" });
    const until = (happened: () => Promise<boolean>) => vi.waitUntil(happened, { timeout: 60_000 });

    beforeEach(() => {
      requests = 0;
      answer = empty;
    });

    test("a content security policy without 'wasm-unsafe-eval' puts an error with the remedy on the console", async () => {
      await open("", "script-src 'self'");
      await page.evaluate((all) => window.show(all), [{ fields: ["ok"] as Field[], initial: empty }]).catch(() => {});
      await until(async () => complaints.some((text) => text.includes("import tidegate/pure")));
      expect(complaints.join("\n")).toContain(
        "WebAssembly is not allowed here: add 'wasm-unsafe-eval' to `script-src`",
      );
    });

    test("limits that are made in the component end with an error, not with requests without end", async () => {
      await open();
      await page.evaluate(() => window.inside());
      await until(async () =>
        complaints.some((text) => text.includes("`from` must be what remoteLimits returned outside of components")),
      );
      expect(await page.locator("output").count()).toBe(0);
    });

    test("the page's button is disabled, counts down by itself, and is back at `retryAt`", async () => {
      answer = { ...empty, value: 1 };
      await open();
      await page.evaluate(() => window.send());
      await shows("button:enabled", "Send");
      await page.click("button");
      for (const seconds of [3, 2, 1]) {
        await shows("button:disabled", `Send \\(${seconds} s\\)`);
        if (seconds > 1) await page.clock.runFor(SECOND);
      }
      await page.clock.runFor(999);
      expect(await page.isDisabled("button")).toBe(true);
      await page.clock.runFor(1);
      await shows("button:enabled", "Send");
      // Once when it was shown, and once after the click.
      expect([requests, complaints]).toEqual([2, []]);
    });

    test("a component renders only when a field that it reads changes", async () => {
      // While the bucket refills, plus once for the state before the first response.
      const times = { ok: 3, remaining: 7, retryAt: 3, retryAfter: 5, error: 1, "ok,remaining": 7, value: 17, "": 1 };
      await open();
      const all = Object.keys(times).map((names) => ({ fields: names.split(",").filter(Boolean) as Field[] }));
      await page.evaluate((all) => window.show(all), all);
      await until(() => page.evaluate(() => window.answers.length === 1));
      for (let i = 0; i < 20; i++) await page.clock.runFor(SECOND);
      expect(await page.evaluate(() => window.renders)).toEqual(times);
      expect([requests, complaints]).toEqual([1, []]);
    });

    test("it hydrates the server's rendering without a mismatch, and then follows its own clock", async () => {
      const all: ShownProps[] = [
        { fields: ["ok", "retryAfter"], initial: empty },
        { fields: ["value"], initial: empty, tick: 100 },
        { fields: ["remaining"], initial: empty },
      ];
      await open(await rendered(all));
      expect(await page.textContent("main")).toBe("false 300000");
      await page.evaluate((all) => window.hydrate(all), all);
      await until(() => page.evaluate(() => window.answers.length === 1));
      await page.clock.runFor(1500);
      await shows('[id="ok,retryAfter"]', "false 2000");
      await shows("#value", "0.5");
      await page.clock.runFor(1500);
      await shows('[id="ok,retryAfter"]', "true undefined");
      await shows("#remaining", "1");
      expect(await page.evaluate(() => window.errors)).toEqual([]);
      expect([requests, complaints]).toEqual([1, []]);
    });
  });
});
