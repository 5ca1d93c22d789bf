import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type DefaultTheme, defineConfig } from "vitepress";
import { repositoryLinks } from "./links.mts";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Written by typedoc beside the API pages. */
const api: DefaultTheme.SidebarItem[] = existsSync(here("../api/typedoc-sidebar.json"))
  ? JSON.parse(readFileSync(here("../api/typedoc-sidebar.json"), "utf8"))
  : [];

const pages = (folder: string, ...names: [text: string, file: string][]): DefaultTheme.SidebarItem[] =>
  names.map(([text, file]) => ({ text, link: `/${folder}${file}` }));

const guides: DefaultTheme.SidebarItem[] = [
  {
    text: "Start",
    items: pages(
      "start/",
      ["Node.js", "node"],
      ["Cloudflare Workers", "workers"],
      ["Deno", "deno"],
      ["Bun", "bun"],
      ["Browsers", "browser"],
      ["React", "react"],
      ["React Native", "react-native"],
      ["Convex", "convex"],
      ["Rust", "rust"],
    ),
  },
  {
    text: "Understand",
    items: pages(
      "guide/",
      ["Two numbers", "algebra"],
      ["Which store when", "stores"],
      ["When the store is down", "outages"],
      ["What is promised", "promises"],
      ["Limits, and when not to use it", "limits"],
      ["Errors", "errors"],
      ["Security", "security"],
    ),
  },
  {
    text: "Recipes",
    items: pages(
      "recipes/",
      ["Failed logins", "failed-logins"],
      ["Sign-ups", "sign-ups"],
      ["Messages", "messages"],
      ["Anonymous users", "anonymous"],
      ["Tokens of a language model", "llm-tokens"],
      ["Webhooks out", "webhooks"],
      ["Scraping politely", "scraping"],
    ),
  },
  {
    text: "Go further",
    items: pages(
      "guide/",
      ["HTTP fields and client keys", "http"],
      ["Limits from data", "policies"],
      ["The caller's side", "client"],
      ["Leases for hot keys", "leases"],
      ["Rates that follow health", "adaptive"],
      ["Replay an access log", "replay"],
    ),
  },
  {
    text: "Coming from",
    items: pages(
      "migrate/",
      ["express-rate-limit", "express-rate-limit"],
      ["rate-limiter-flexible", "rate-limiter-flexible"],
      ["@upstash/ratelimit", "upstash"],
      ["Convex's rate limiter", "convex"],
    ),
  },
];

export default defineConfig({
  title: "Tidegate",
  description: "Rate limits for JavaScript that give the same exact answer on every host and in every store.",
  lang: "en",
  base: process.env["DOCS_BASE"] ?? "/",
  outDir: "dist",
  cacheDir: "node_modules/.cache/vitepress",
  srcExclude: ["**/node_modules/**", "dist/**"],
  cleanUrls: false,
  // What cargo and vite put beside the pages; tests/site follows these links in what was built.
  ignoreDeadLinks: [/^\/(rust|playground)\//],
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${process.env["DOCS_BASE"] ?? "/"}mark.svg` }]],
  markdown: { config: repositoryLinks, theme: { light: "github-light-high-contrast", dark: "github-dark-default" } },
  vite: { build: { chunkSizeWarningLimit: 2000 } },
  themeConfig: {
    logo: "/mark.svg",
    search: { provider: "local" },
    outline: { level: [2, 3] },
    externalLinkIcon: false,
    nav: [
      { text: "Start", link: "/start/node", activeMatch: "^/start/" },
      { text: "Guides", link: "/guide/algebra", activeMatch: "^/(guide|recipes|migrate)/" },
      { text: "API", link: "/api/", activeMatch: "^/api/" },
      { text: "Rust", link: "/rust/tidegate_core/index.html", target: "_self" },
      { text: "Playground", link: "/playground/index.html", target: "_self" },
      { text: "GitHub", link: "https://github.com/tidegate/tidegate" },
    ],
    sidebar: { "/api/": api, "/": guides },
    footer: { message: "MIT licensed. Every block of code on these pages is run by the tests." },
  },
});
