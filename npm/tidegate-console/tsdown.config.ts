import { defineConfig } from "tsdown";

export default defineConfig({
  entry: { index: "src/index.ts" },
  format: "esm",
  platform: "neutral",
  target: "es2022",
  dts: { sourcemap: false },
  fixedExtension: false,
  sourcemap: false,
  // The page is a file of its own, which is loaded with the first request for it.
  unbundle: true,
  hash: false,
  clean: true,
  logLevel: "warn",
  copy: [{ from: "src/generated/bundled.json", to: "dist" }],
  // The app's copy of tidegate, so that a process has one engine.
  deps: { neverBundle: [/^tidegate($|\/)/] },
});
