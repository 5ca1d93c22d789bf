// Programs whose bundles are measured: ours by host, as the table of ceilings in reference/figures.md names them, and the peers'.
import { createRequire } from "node:module";

// The workspace's esbuild, not a peer's.
const { build } = createRequire(new URL("../../../package.json", import.meta.url))("esbuild");

const BROWSER = { conditions: ["browser"], platform: "neutral", mainFields: [], external: ["react"] };
const WORKERD = {
  conditions: ["workerd", "worker", "browser"],
  platform: "neutral",
  mainFields: [],
  external: ["*.wasm", "cloudflare:*"],
};
const NODE = { platform: "node" };

/** @typedef {{ text: string, options: object, wasm?: string }} Program */

const program = (text) => ({ text, options: BROWSER });
const uses = (from, ...names) =>
  program(`import { ${names.join(", ")} } from "${from}"; globalThis.used = [${names.join(", ")}];`);

/** `wasm` is the file beside a program's script, where the bundler keeps it as a module. @type {Record<string, Program>} */
export const OURS = {
  "a page, header fields": uses("tidegate/http", "rateLimitHeaders"),
  "a page, all of tidegate/http": program('import * as http from "tidegate/http"; globalThis.used = http;'),
  "a page, the algebra alone": uses("tidegate", "evaluate", "project"),
  "a React page": uses("tidegate/react", "useRateLimit", "remoteLimits"),
  "a page, throttled calls": uses("tidegate/client", "throttle"),
  "a page, in memory": uses("tidegate", "defineLimits"),
  "a Worker with Durable Objects": {
    text: `import { defineLimits } from "tidegate";
      import { durableObject } from "tidegate/durable-object";
      export { TidegateObject } from "tidegate/durable-object";
      globalThis.used = [defineLimits, durableObject];`,
    options: WORKERD,
    wasm: "small.wasm",
  },
  "a page without WebAssembly": uses("tidegate/pure", "defineLimits"),
  "an app on React Native, in memory": {
    ...uses("tidegate/pure", "defineLimits"),
    options: { ...BROWSER, conditions: ["react-native"] },
  },
  "a page that checks policies": program('import * as policies from "tidegate/policies"; globalThis.used = policies;'),
};

const peer = (name, what) => ({
  text: `import { ${what} } from "${name}"; globalThis.used = ${what};`,
  options: NODE,
});

/** In memory, as far as a peer can be imported in parts. */
export const PEERS = {
  "express-rate-limit": peer("express-rate-limit", "rateLimit"),
  "hono-rate-limiter": peer("hono-rate-limiter", "rateLimiter"),
  "@convex-dev/rate-limiter": peer("@convex-dev/rate-limiter", "calculateRateLimit"),
  "rate-limiter-flexible": peer("rate-limiter-flexible", "RateLimiterMemory"),
};

/** The program as one minified script. */
export async function scriptOf({ text, options }, resolveDir) {
  const { outputFiles } = await build({
    stdin: { contents: text, resolveDir, loader: "js" },
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    // Without the sources' tsconfig.json, which maps to their types.
    tsconfigRaw: {},
    logLevel: "silent",
    ...options,
  });
  return outputFiles[0].text;
}
