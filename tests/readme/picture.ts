/** Takes the README's picture: the playground after one burst, and the page in it, as text without pixels. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { serve } from "../examples/process.ts";
import { launch, type Page } from "../support/chromium.ts";
import { root } from "./blocks.ts";

export const SCHEMES = ["light", "dark"] as const;
export type Scheme = (typeof SCHEMES)[number];

export const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Elements, classes, names and texts, one line each. Dates and digits are masked: times and tokens differ between runs. */
const OUTLINE = `(() => {
  const mask = (text) => text.replace(/\\s+/g, " ").trim()
    .replace(/[A-Z][a-z]{2}, \\d+ [A-Z][a-z]{2} \\d+ [\\d:]+ GMT/g, "a date").replace(/[0-9a-f]{16}/g, "0").replace(/[+\u2212-]?\\d+(\\.\\d+)?/g, "0");
  const lines = [];
  const visit = (node, indent) => {
    if (node.nodeType === 3) {
      if (mask(node.data) !== "") lines.push(indent + JSON.stringify(mask(node.data)));
      return;
    }
    if (node.nodeType !== 1) return;
    const name = node.localName + [...node.classList].map((it) => "." + it).join("");
    const label = node.ariaLabel ? " " + JSON.stringify(mask(node.ariaLabel)) : "";
    lines.push(indent + name + label);
    if (node.localName !== "svg" && !node.classList.contains("uplot"))
      for (const child of node.childNodes) visit(child, indent + " ");
  };
  visit(document.getElementById("page"), "");
  return lines.join("\\n");
})()`;

/** A burst of 12 on 20 tokens, and a denied request of 9. No token refills while the picture is taken. */
async function play(page: Page): Promise<void> {
  await page.locator(".agreement.agree").waitFor();
  await page.getByRole("slider", { name: "rate" }).fill("1");
  await page.getByRole("slider", { name: "period" }).fill("4");
  await page.getByRole("slider", { name: "requests of a burst" }).fill("12");
  await page.getByRole("button", { name: "Reset", exact: true }).click();
  await page.getByRole("button", { name: "Send a burst of 12", exact: true }).click();
  await page.getByRole("slider", { name: "tokens a request" }).fill("9");
  await page.getByRole("button", { name: "Send one", exact: true }).click();
  await page.locator(".verdict", { hasText: "13 decisions" }).waitFor();
  await page.locator(".log .badge", { hasText: "429 denied" }).first().waitFor();
  // Both sides have drawn the value that is left.
  await page.locator(".now b", { hasText: /^8\./ }).nth(1).waitFor();
}

/** Opens the playground of the built example server in Chromium: its outline, and its picture in each colour scheme. */
export async function takePicture(chromium: string): Promise<{ outline: string; png: Record<Scheme, Buffer> }> {
  const server = await serve({ PORT: "0" });
  const browser = await launch(chromium);
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 840 }, reducedMotion: "reduce" });
    const page = await context.newPage();
    page.setDefaultTimeout(90_000);
    await page.goto(`${server.url}/`);
    await play(page);
    const png = {} as Record<Scheme, Buffer>;
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      await page.mouse.move(0, 0);
      png[colorScheme] = await page.screenshot();
    }
    const assets = join(root, "examples/playground/dist/assets");
    const style = readdirSync(assets).filter((file) => file.endsWith(".css"));
    const styles = style.map((file) => sha256(readFileSync(join(assets, file)))).sort();
    return {
      outline: [await page.evaluate<string>(OUTLINE), ...styles.map((hash) => `style ${hash}`)].join("\n"),
      png,
    };
  } finally {
    await browser.close();
    await server.stop();
  }
}
