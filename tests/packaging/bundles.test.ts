import { createRequire } from "node:module";
import { createContext, runInContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { bundle as bundleOf } from "./bundle.ts";
import { entries, forTests, install } from "./installed.ts";
import { ANSWERS, use } from "./program.ts";

const user = forTests(install());

const bundle = (text: string, conditions: string[], external: string[] = []): Promise<string> =>
  bundleOf(user, text, { conditions, external });

/** What a browser has, and nothing of Node.js. */
function browserLike(): Record<string, unknown> {
  const shared = { WebAssembly, TextEncoder, TextDecoder, crypto, performance, console, URL };
  return createContext(shared) as Record<string, unknown>;
}

const PROGRAM = use('import { defineLimits, MINUTE } from "tidegate";');

/** Has `tidegate/pure` for its effect alone. */
const OTHERS = `import "tidegate/pure";
  import { defineLimits, evaluate, MINUTE } from "tidegate";
  const config = { kind: "token bucket", rate: 1, period: MINUTE };
  globalThis.evaluated = evaluate(null, config, { now: 0 }).decision.ok;
  globalThis.limited = defineLimits({ one: config }).limit("one").ok;`;

describe("bundled", () => {
  test.each([[["browser"]], [[]]])("for conditions %j, it runs where there is no Node.js", async (conditions) => {
    const text = await bundle(PROGRAM, conditions);
    const context = browserLike();
    runInContext(text, context);
    expect(context["answers"]).toBe(ANSWERS);
  });

  test("for a browser, it names no module of Node.js", async () => {
    expect(await bundle(PROGRAM, ["browser"])).not.toMatch(/["'`]node:/);
  });

  test("tidegate/pure has no WebAssembly, and what other entries decide is decided by its engine", async () => {
    const alone = await bundle(use('import { defineLimits, MINUTE } from "tidegate/pure";'), ["browser"]);
    expect(alone).not.toContain("WebAssembly.Module");
    for (const [text, name, expected] of [
      [alone, "answers", ANSWERS],
      [await bundle(OTHERS, ["browser"]), "limited", true],
      [await bundle(OTHERS, ["browser"]), "evaluated", true],
    ] as const) {
      const context = browserLike();
      runInContext("delete globalThis.WebAssembly", context);
      runInContext(text, context);
      expect(context[name], name).toBe(expected);
    }
  });

  test("a bundler that selects the files for Node.js, as Bun's, keeps an import of tidegate/pure alone", async () => {
    const context = Object.assign(browserLike(), { require: createRequire(import.meta.url) });
    runInContext("delete globalThis.WebAssembly", context);
    runInContext(await bundle(OTHERS, ["node"], ["node:*"]), context);
    expect(context).toMatchObject({ limited: true, evaluated: true });
  });

  test("a page without WebAssembly that has tried tidegate can still load tidegate/pure", async () => {
    const tried = `import { defineLimits, evaluate } from "tidegate";
      const config = { kind: "token bucket", rate: 1, period: 1000 };
      globalThis.errors = [];
      for (const attempt of [() => defineLimits({ one: config }).limit("one"), () => evaluate(null, config, { now: 0 })]) {
        try { attempt(); } catch (error) { errors.push(error.message); }
      }`;
    const header = 'import { defineLimits, evaluate, MINUTE } from "tidegate/pure";';
    const evaluated =
      "globalThis.ok = evaluate(null, { kind: 'token bucket', rate: 1, period: 1 }, { now: 0 }).decision.ok;";
    const context = browserLike();
    runInContext("delete globalThis.WebAssembly", context);
    runInContext(await bundle(tried, ["browser"]), context);
    expect(context["errors"]).toEqual(Array(2).fill("there is no WebAssembly here: import tidegate/pure instead"));
    runInContext(await bundle(use(header) + evaluated, ["browser"]), context);
    expect([context["answers"], context["ok"]]).toEqual([ANSWERS, true]);
  });

  test("where WebAssembly is not allowed, policies name the remedies", async () => {
    const text = await bundle(
      `import { checkPolicies } from "tidegate/policies";
      try { checkPolicies({ rules: [] }); } catch (error) { globalThis.error = error.message; }`,
      ["browser"],
    );
    const context = browserLike();
    runInContext("delete globalThis.WebAssembly", context);
    runInContext(text, context);
    expect(context["error"]).toMatch(
      /^WebAssembly checks policy documents, .* add 'wasm-unsafe-eval' .* on a server \(/,
    );
  });

  test("minified with shorter names for what begins with an underscore, as apps do, it runs and checks policies", async () => {
    const policies = `import { checkPolicies } from "tidegate/policies";
      globalThis.mistakes = checkPolicies({ rules: [] }).map(({ path }) => path).join();`;
    const text = await bundleOf(user, PROGRAM + policies, {
      conditions: ["browser"],
      mangleProps: /^_/,
      mangleQuoted: true,
    });
    const context = browserLike();
    runInContext(text, context);
    expect([context["answers"], context["mistakes"]]).toEqual([ANSWERS, "rules"]);
  });

  test("for Fastly Compute, which has no WebAssembly and bundles as for a browser, it runs", async () => {
    const context = browserLike();
    runInContext("delete globalThis.WebAssembly", context);
    runInContext(await bundle(PROGRAM, ["fastly", "browser"]), context);
    expect(context["answers"]).toBe(ANSWERS);
  });

  test("where the host refuses a FinalizationRegistry, as in workflows of Temporal, it runs", async () => {
    const pure = use('import { defineLimits, MINUTE } from "tidegate/pure";');
    for (const text of [PROGRAM, pure]) {
      const context = browserLike();
      runInContext("FinalizationRegistry = function () { throw new Error('not in workflows'); }", context);
      runInContext(await bundle(text, []), context);
      expect(context["answers"]).toBe(ANSWERS);
    }
  });

  test("for workerd, the wasm stays a module of its own, as that host demands", async () => {
    const text = await bundle(PROGRAM, ["workerd", "worker", "browser"], ["*.wasm"]);
    expect(text).toContain("small.wasm");
    expect(text).not.toMatch(/["'`]node:/);
  });

  test("entries that need no engine do not include it", async () => {
    const whole = await bundle(PROGRAM, ["browser"]);
    const keys = await bundle('export { clientIp, statusOf, tupleKey } from "tidegate/http";', ["browser"]);
    expect(keys).not.toContain("WebAssembly.Module");
    expect(whole).toContain("WebAssembly.Module");
    expect(keys.length).toBeLessThan(whole.length / 4);
  });

  test("an application of NestJS without gateways does not need their package", async () => {
    const text = await bundleOf(user, 'export { rateLimitGuard } from "tidegate/nest";', {
      conditions: ["node"],
      external: ["node:*", "@nestjs/common", "@nestjs/core"],
      format: "esm",
    });
    expect(text).toContain("@nestjs/common");
  });

  test("prints the size of each entry", async () => {
    const rows: Record<string, { minified: number; gzip: number }> = {};
    for (const entry of entries(user.manifest())) {
      const text = await bundle(
        `import * as all from "${entry}"; globalThis.all = all;`,
        ["browser"],
        ["node:*", "react", "@nestjs/*"],
      );
      rows[entry] = { minified: text.length, gzip: gzipSync(text).length };
      // Everything, the engine as text included, stays below what a slow line brings in a second: 200 kB. Policies are
      // a server's, and bring the check of documents along.
      expect(text.length, entry).toBeLessThan(entry === "tidegate/policies" ? 300_000 : 200_000);
    }
    console.table(rows);
  });
});
