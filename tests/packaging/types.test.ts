import { cpSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { typeErrors } from "./checkers.ts";
import { forTests, install, root } from "./installed.ts";

const user = forTests(install());

const PROGRAM = `import { defineLimits, MINUTE } from "tidegate";
import type { RedisLike } from "tidegate/redis";
import { limitStream } from "tidegate/client";
export type { RedisLike };
export { limitStream };
const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const decision = limits.limit("send", { key: "a" });
const ok: boolean = decision.ok;
const later: number | undefined = decision.retryAt;
// @ts-expect-error: a name that was not defined
limits.limit("sned");
// @ts-expect-error: tokens are a number
limits.limit("send", { count: "1" });
console.log(ok, later);
`;

/** How people's projects resolve modules, with the strictest settings and the package's own declarations checked. */
const WAYS = [
  { module: "nodenext", moduleResolution: "nodenext", file: "user.mts" },
  { module: "nodenext", moduleResolution: "nodenext", file: "user.cts" },
  { module: "node16", moduleResolution: "node16", file: "user.mts" },
  { module: "node20", moduleResolution: "node16", file: "user.cts" },
  { module: "esnext", moduleResolution: "bundler", file: "user.ts" },
  { module: "preserve", moduleResolution: "bundler", file: "user.ts" },
];
/** The resolution from before `exports`, as in older Nest projects. TypeScript 6 is the last that has it, by an option. */
const OLD = ["commonjs", "esnext"].map((module) => ({ module, moduleResolution: "node10", ignoreDeprecations: "6.0" }));

/** Compiles a file in the user's folder, and expects no error. */
function compile(file: string, how: object, typescript?: string): void {
  const options = { lib: ["es2022", "dom"], declaration: true, ...how };
  expect(typeErrors(user.folder, [file], options, typescript)).toBe("");
}

describe("the declarations", () => {
  test.each(WAYS)("compile strictly from $file with $moduleResolution ($module)", ({ file, ...how }) => {
    user.write(file, PROGRAM);
    compile(file, how);
  });

  test.each(OLD)("compile strictly with $moduleResolution ($module), by TypeScript 6", (how) => {
    user.write("user.ts", PROGRAM);
    compile("user.ts", how, join(root, "node_modules/typescript"));
  });

  test("name each type that an app's own declarations need", () => {
    user.write(
      "methods.ts",
      `import { defineLimits, MINUTE } from "tidegate";
      const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
      export const { limit, check, give, charge, block, unblock, limitAll, checkAll, limitMany, reset, getValue } = limits;`,
    );
    compile("methods.ts", { module: "esnext", moduleResolution: "bundler" });
  });

  test("take what another copy of the package made, as pnpm installs one for each set of peers", () => {
    cpSync(join(user.folder, "node_modules/tidegate"), join(user.folder, "limits/node_modules/tidegate"), {
      recursive: true,
    });
    // TypeScript takes copies of one version for the same where their peers are.
    user.write("limits/node_modules/react/package.json", JSON.stringify({ name: "react", version: "18.3.1" }));
    user.write(
      "limits/index.ts",
      `import { defineLimits, memory, MINUTE } from "tidegate";
      import { semaphore } from "tidegate/client";
      import { definePolicies } from "tidegate/policies";
      import { remoteLimits } from "tidegate/react";
      export const store = memory();
      export const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } }, { store });
      export const four = semaphore(4);
      export const policies = definePolicies<string>({ rules: [] });
      export const from = remoteLimits(async () => ({ ...limits.getValue("api"), now: Date.now() }));`,
    );
    user.write(
      "copies.ts",
      `import { four, from, limits, policies, store } from "./limits/index.js";
      import { defineLimits } from "tidegate";
      import { throttle } from "tidegate/client";
      import { rateLimit } from "tidegate/fetch";
      import type { Policies } from "tidegate/policies";
      import type { RemoteLimits } from "tidegate/react";
      export const handler = rateLimit(limits, { name: "api" }, () => new Response());
      export const run = throttle(() => 1, { limiter: limits, name: "api" }, { concurrency: four });
      export const others = defineLimits({}, { store });
      export const page: RemoteLimits = from;
      export const rules: Policies<string, typeof store> = policies;
      // @ts-expect-error: a name that was not defined
      export const wrong = throttle(() => 1, { limiter: limits, name: "app" });`,
    );
    compile("copies.ts", { module: "esnext", moduleResolution: "bundler" });
  });

  test("take any function as the `fetch` that sends, where the host's has properties, as Bun's `preconnect`", () => {
    user.write(
      "own-fetch.ts",
      `import { createFetch } from "tidegate/client";
      declare global {
        namespace fetch {
          function preconnect(url: string): void;
        }
      }
      export const limited = createFetch({ fetch: (input, init) => fetch(input, { ...init, cache: "no-store" }) });
      export const canned = createFetch({ fetch: async () => new Response("hello") });
      export const host = createFetch({ fetch });
      // @ts-expect-error: a fetch takes more than URLs
      export const urls = createFetch({ fetch: async (input: URL) => new Response(input.href) });`,
    );
    compile("own-fetch.ts", { module: "esnext", moduleResolution: "bundler" });
  });
});
