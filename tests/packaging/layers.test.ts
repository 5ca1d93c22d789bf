/** Bundles for browsers contain what a limiter needs for stores that can fail only through such a store. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bundle } from "./bundle.ts";
import { forTests, install } from "./installed.ts";

const user = forTests(install());

const OWN = `
  const fail = () => Promise.reject(new Error("down"));
  const own = { name: "own", sync: false, decide: fail, decideAll: fail, reset: fail, getValue: fail };
  const configs = { api: { kind: "token bucket", rate: 1, period: 1000 } };`;

/** What the bundled program prints. */
async function printed(program: string, ...conditions: string[]): Promise<string> {
  const text = await bundle(user, program, { conditions, format: "esm" });
  user.write("bundle.mjs", text);
  return execFileSync(process.execPath, [join(user.folder, "bundle.mjs")], { encoding: "utf8" }).trim();
}

const attempt = (from: string, store: string) => `
  import { defineLimits } from "${from}";
  import { layers, transactional } from "tidegate/store";
  ${OWN}
  try {
    const { degraded } = await defineLimits(configs, { store: ${store}, log: false }).limit("api");
    console.log("degraded:", degraded);
  } catch (error) {
    console.log(error.code, error.message);
  }`;

const MISSING =
  "TIDEGATE_INPUT `store` must be memory(), or in this bundle a store with the `layers` of tidegate/store; got an object";

test.each([
  ["tidegate", "browser"],
  ["tidegate", "react-native"],
  ["tidegate/pure", "browser"],
])("%s for %s: an own store with promises needs layers, and works with them", async (from, condition) => {
  expect(await printed(attempt(from, "own"), condition)).toBe(MISSING);
  expect(await printed(attempt(from, "{ ...own, layers }"), condition)).toBe("degraded: true");
});

test("for a browser, the package's stores bring their layers", async () => {
  const store = 'transactional({ name: "own", transaction: fail })';
  expect(await printed(attempt("tidegate", store), "browser")).toBe("degraded: true");
});

test.each([["edge-light"], ["fastly", "browser"], ["convex"], ["worker"]])(
  "for %s, no store needs them",
  async (...conditions) => {
    expect(await printed(attempt("tidegate", "own"), ...conditions)).toBe("degraded: true");
  },
);
