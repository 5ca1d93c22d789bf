import { defineConfig } from "vite";
import { uplot } from "../../npm/scripts/uplot.mjs";

/** `npm start` builds the page into dist, which the example server serves. */
export default defineConfig({
  plugins: [uplot],
  build: {
    target: "es2022",
    // The page's content security policy allows nothing inline; browsers that support it need no polyfill.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The wasm is in the script, as text.
    chunkSizeWarningLimit: 600,
  },
  // `npx vite examples/playground`, with `npm start` running: the page with hot reload, on the real server.
  server: { proxy: { "/api": "http://127.0.0.1:3000" } },
});
