// Programs whose bundles are measured: ours by host, as the table of ceilings in reference/figures.md names them, and the peers'.
import { createRequire } from "node:module";

// The workspace's esbuild, not a peer's.
const { build } = createRequire(new URL("../../../package.json", import.meta.url))("esbuild");

const BROWSER = { conditions: ["browser"], platform: "neutral", mainFields: [] };
const WORKERD = {
  conditions: ["workerd", "worker", "browser"],
  platform: "neutral",
  mainFields: [],
  external: ["*.wasm", "cloudflare:*"],
};
const NODE = { platform: "node" };

/** The wasm files beside a program's script, if the bundler keeps them as modules. */
export const OURS = {
  "a page, in memory": {
    text: 'import { defineLimits } from "tidegate"; globalThis.used = defineLimits;',
    options: BROWSER,
  },
  "a page, the algebra alone": {
    text: 'import { evaluate, project } from "tidegate"; globalThis.used = [evaluate, project];',
    options: BROWSER,
  },
  "a Worker with Durable Objects": {
    text: `import { defineLimits } from "tidegate";
      import { durableObject } from "tidegate/durable-object";
      export { TidegateObject } from "tidegate/durable-object";
      globalThis.used = [defineLimits, durableObject];`,
    options: WORKERD,
    wasm: "small.wasm",
  },
  "an app on React Native, in memory": {
    text: 'import { defineLimits } from "tidegate/pure"; globalThis.used = defineLimits;',
    options: { ...BROWSER, conditions: ["react-native"] },
  },
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
