import { defineConfig } from "tsdown";

export default defineConfig({
  entry: { index: "src/index.ts", cli: "src/cli.ts", bin: "src/bin.ts" },
  format: "esm",
  platform: "node",
  target: "es2022",
  dts: { sourcemap: false },
  fixedExtension: false,
  sourcemap: false,
  // The module is read from where it is relative to the source's file.
  unbundle: true,
  hash: false,
  clean: true,
  logLevel: "warn",
  copy: [{ from: "src/generated/replay_bg.wasm", to: "dist/generated" }],
});
