/** What a bundle weighs, JavaScript and wasm together. The ceilings are the README's. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundle, type BundleOptions } from "./bundle.ts";
import { install, type Installed, root } from "./installed.ts";

let user: Installed;
beforeAll(() => {
  user = install();
});
afterAll(() => user.remove());

const BROWSER: BundleOptions = { conditions: ["browser"], format: "esm" };
const WORKERD: BundleOptions = {
  conditions: ["workerd", "worker", "browser"],
  format: "esm",
  external: ["*.wasm", "cloudflare:*"],
};
const PROGRAMS: Readonly<Record<string, [program: string, options: BundleOptions, wasm?: string]>> = {
  "a page, in memory": ['import { defineLimits } from "tidegate"; globalThis.used = defineLimits;', BROWSER],
  "a page, the algebra alone": [
    'import { evaluate, project } from "tidegate"; globalThis.used = [evaluate, project];',
    BROWSER,
  ],
  "a Worker with Durable Objects": [
    `import { defineLimits } from "tidegate";
     import { durableObject } from "tidegate/durable-object";
     export { TidegateObject } from "tidegate/durable-object";
     globalThis.used = [defineLimits, durableObject];`,
    WORKERD,
    "small.wasm",
  ],
  "an app on React Native, in memory": [
    'import { defineLimits } from "tidegate/pure"; globalThis.used = defineLimits;',
    { ...BROWSER, conditions: ["react-native"] },
  ],
};

/** The README's table: by program, the most kB that it may weigh. */
const ceilings = new Map(
  [...readFileSync(join(root, "README.md"), "utf8").matchAll(/^\| (an? [^|]*?) \|.*\| (\d+) kB \|$/gm)].map(
    ([, name = "", kB]) => [name, Number(kB) * 1000],
  ),
);

test("the README's table has each of these bundles", () => {
  expect([...ceilings.keys()]).toEqual(Object.keys(PROGRAMS));
});

test.each(Object.entries(PROGRAMS))("%s weighs no more than the README says, and not much less", async (name, how) => {
  const [program, options, wasm] = how;
  const script = await bundle(user, program, options);
  const module = wasm && readFileSync(join(user.folder, "node_modules/tidegate/dist/engine/generated", wasm));
  const sizes = [script, ...(module ? [module] : [])].map((part) => gzipSync(part).length);
  const sum = sizes.reduce((total, size) => total + size, 0);
  console.log(`${name}: ${sum} bytes (${sizes.join(" + ")})`);
  const ceiling = ceilings.get(name) ?? 0;
  expect(sum).toBeLessThanOrEqual(ceiling);
  // Whoever makes it smaller says so.
  expect(sum).toBeGreaterThan(ceiling * 0.85);
});
