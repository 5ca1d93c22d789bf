/** The README's picture shows the current playground. `npm run picture` takes it again. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inChromium } from "../support/chromium.ts";
import { root } from "./blocks.ts";
import { SCHEMES, sha256, takePicture } from "./picture.ts";

const picture = (scheme: string): string => join(root, `npm/site/public/playground-${scheme}.png`);
/** The page in the pictures, and the pictures' hashes. */
const shown = join(root, "tests/readme/picture.txt");

inChromium("the README's picture, in Chromium", (chromium) => {
  test("the README's picture shows the current playground", async () => {
    const { outline, png } = await takePicture(chromium);
    if (process.env["TIDEGATE_PICTURE"] === "take") {
      for (const scheme of SCHEMES) writeFileSync(picture(scheme), png[scheme]);
    }
    const hashes = SCHEMES.map((scheme) => `${scheme} ${sha256(readFileSync(picture(scheme)))}`);
    const text = `${[outline, ...hashes].join("\n")}\n`;
    if (process.env["TIDEGATE_PICTURE"] === "take") writeFileSync(shown, text);
    // By lines, so that the difference shows what has changed.
    expect(text.split("\n"), "the page has changed; take its picture anew: npm run picture").toEqual(
      readFileSync(shown, "utf8").split("\n"),
    );
  });
});
