import { defineConfig } from "vite";
import { uplot } from "../../scripts/uplot.mjs";

/** `npm run build` puts what this writes into one document: npm/scripts/console.mjs. */
export default defineConfig({
  plugins: [uplot],
  build: {
    outDir: "../../../target/console",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
    license: { fileName: "licenses.json" },
  },
});
