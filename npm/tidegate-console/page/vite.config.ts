import { defineConfig } from "vite";

/** `npm run build` puts what this writes into one document: npm/scripts/console.mjs. */
export default defineConfig({
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
