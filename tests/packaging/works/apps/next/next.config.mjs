import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
export default {
  outputFileTracingRoot: root,
  // Nothing is deployed, and tracing Next.js itself takes long; @vercel/nft has a row of its own.
  outputFileTracingExcludes: { "*": ["**/*"] },
  turbopack: { root },
  // In one process: each of several would load Next.js again.
  experimental: { cpus: 1, webpackBuildWorker: false },
};
