/** The system's browsers: Chromium, driven by playwright-core, Firefox by puppeteer-core over WebDriver BiDi, and WebKit. */
import { launch } from "../../support/chromium.ts";
import { launchWebKit } from "./webkit.ts";

export interface Page {
  goto(url: string): Promise<unknown>;
  evaluate<Result>(code: string): Promise<Result>;
  reload(): Promise<unknown>;
  close(): Promise<void>;
}

/** A profile: its pages share storage. */
export interface Profile {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}

export interface Browser {
  newContext(): Promise<Profile>;
  close(): Promise<void>;
}

interface Puppeteer {
  launch(options: object): Promise<{ createBrowserContext(): Promise<Profile>; close(): Promise<void> }>;
}

async function launchFirefox(executablePath: string): Promise<Browser> {
  // Without its types, which are installed on demand.
  const name = "puppeteer-core";
  const { launch: start } = (await import(name)) as Puppeteer;
  // None of its own requests; a page that evaluates for a minute is not stopped.
  const extraPrefsFirefox = { "network.captive-portal-service.enabled": false, "dom.max_script_run_time": 0 };
  const options = { browser: "firefox", executablePath, extraPrefsFirefox, timeout: 120_000, protocolTimeout: 240_000 };
  const browser = await start(options);
  return { newContext: () => browser.createBrowserContext(), close: () => browser.close() };
}

type Launch = (program: string) => Promise<Browser>;
const BROWSERS = { chromium: launch as Launch, firefox: launchFirefox, webkit: launchWebKit };
/** By name. WebKit on demand: its start for each profile makes half a minute of both files. */
export const browsers = (Object.entries(BROWSERS) as [keyof typeof BROWSERS, Launch][]).filter(
  ([name]) => name !== "webkit" || process.env["TIDEGATE_WEBKIT"],
);
