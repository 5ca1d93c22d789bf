/** The system's Chromium, driven by playwright-core. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Browser } from "playwright-core";
import { describe } from "vitest";
import { absent } from "./absent.ts";

export type { Browser, BrowserContext, Page } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** Where Chromium may be, and how to get it. */
export const places: readonly string[] = (process.env["PATH"] ?? "")
  .split(delimiter)
  .flatMap((folder) => NAMES.map((name) => join(folder, name)));
export const INSTALL = "apt-get install -y --no-install-recommends chromium";

// Disables its own requests: without these options it contacts its maker's hosts at every start.
const ARGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"];

/** Where Chromium is, or `undefined`. */
export const findChromium = (): string | undefined => places.find((place) => existsSync(place));

/** Defines tests with the path of Chromium; without it they are skipped as {@link absent} does. */
export function inChromium(title: string, define: (program: string) => void): void {
  const program = findChromium();
  if (program === undefined) absent(title, `Chromium is not installed: ${INSTALL}`);
  else describe(title, () => define(program));
}

/** Starts it; each context is a separate profile, whose pages share storage. */
export async function launch(executablePath: string): Promise<Browser> {
  // Loaded on demand: playwright patches `fs`, which must not affect callers that only need the path.
  const { chromium } = await import("playwright-core");
  return chromium.launch({ executablePath, args: ARGS, chromiumSandbox: false, timeout: 120_000 });
}
