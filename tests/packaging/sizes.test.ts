/** What a bundle weighs, JavaScript and wasm together. The ceilings are those of the site's figures. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { OURS, scriptOf } from "../bench/sizes/programs.mjs";
import { forTests, install, root } from "./installed.ts";

const user = forTests(install());

/** The table of ceilings: by program, the most kB that it may weigh. */
const ceilings = new Map(
  [
    ...readFileSync(join(root, "npm/site/reference/figures.md"), "utf8").matchAll(
      /^\| (an? [^|]*?) \|.*\| ([\d.]+) kB \|$/gm,
    ),
  ].map(([, name = "", kB]) => [name, Number(kB) * 1000]),
);

test("the table of ceilings has each of these bundles", () => {
  expect([...ceilings.keys()]).toEqual(Object.keys(OURS));
});

test.each(Object.entries(OURS))("%s weighs at most its ceiling, and at least 85 %% of it", async (name, program) => {
  const { wasm } = program;
  const script = await scriptOf(program, user.folder);
  const module = wasm && readFileSync(join(user.folder, "node_modules/tidegate/dist/engine/generated", wasm));
  const sizes = [script, ...(module ? [module] : [])].map((part) => gzipSync(part).length);
  const sum = sizes.reduce((total, size) => total + size, 0);
  console.log(`${name}: ${sum} bytes (${sizes.join(" + ")})`);
  const ceiling = ceilings.get(name) ?? 0;
  expect(sum).toBeLessThanOrEqual(ceiling);
  // A smaller bundle requires a lower ceiling here.
  expect(sum).toBeGreaterThan(ceiling * 0.85);
});
