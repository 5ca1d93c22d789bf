import { defineConfig } from "nitro";

export default defineConfig({
  serverDir: "./server",
  preset: "cloudflare_module",
  compatibilityDate: "2026-08-01",
});
