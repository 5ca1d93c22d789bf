import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type DefaultTheme, defineConfig, type MarkdownRenderer } from "vitepress";
import { FOLDERS } from "../folders.mjs";
import { searchOptions } from "../search.mjs";
import { describe } from "./describe.mts";
import { sourceLinks } from "./links.mts";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Written by typedoc beside the API pages. */
const api: DefaultTheme.SidebarItem[] = existsSync(here("../api/typedoc-sidebar.json"))
  ? JSON.parse(readFileSync(here("../api/typedoc-sidebar.json"), "utf8"))
  : [];

const titleOf = (page: string): string => /^# (.*)$/m.exec(readFileSync(page, "utf8"))?.[1] ?? page;

/** Every page of a folder, under its title. */
function menu(folder: string, { text, first }: { text: string; first: string[] }): DefaultTheme.SidebarItem[] {
  if (!existsSync(here(`../${folder}`))) return [];
  const names = readdirSync(here(`../${folder}`)).flatMap((file) => /^([\w-]+)\.md$/.exec(file)?.[1] ?? []);
  const place = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length);
  const pages = names
    .map((name) => ({ name, text: titleOf(here(`../${folder}/${name}.md`)), link: `/${folder}/${name}` }))
    .sort((a, b) => place(a.name) - place(b.name) || a.text.localeCompare(b.text, "en"));
  return [{ text, items: pages.map(({ text: title, link }) => ({ text: title, link })) }];
}

/** The search renders each page once more. A block of code is highlighted once. */
function highlightOnce({ options }: MarkdownRenderer): void {
  const { highlight } = options;
  const highlighted = new Map<string, string>();
  options.highlight = (...block) => {
    const key = block.join("\0");
    const html = highlighted.get(key) ?? highlight?.(...block) ?? "";
    highlighted.set(key, html);
    return html;
  };
}

export default defineConfig({
  title: "Tidegate",
  description: "Rate limiting for JavaScript that gives the same exact answer on every host and in every store.",
  lang: "en",
  base: process.env["DOCS_BASE"] ?? "/",
  outDir: "dist",
  cacheDir: "node_modules/.cache/vitepress",
  srcExclude: ["**/node_modules/**", "dist/**"],
  transformPageData: ({ filePath, description }) => {
    if (description === "" && existsSync(here(`../${filePath}`)))
      return { description: describe(readFileSync(here(`../${filePath}`), "utf8")) };
    return undefined;
  },
  cleanUrls: false,
  // Cargo and Vite write these beside the pages. tests/site follows these links in the built site.
  ignoreDeadLinks: [/^\/(rust|playground)\//],
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${process.env["DOCS_BASE"] ?? "/"}mark.svg` }]],
  markdown: {
    config: (md) => {
      sourceLinks(md);
      highlightOnce(md);
    },
    theme: { light: "github-light-high-contrast", dark: "github-dark-default" },
  },
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  themeConfig: {
    logo: "/mark.svg",
    search: {
      provider: "local",
      options: {
        detailedView: true,
        miniSearch: { searchOptions },
        // Files of the repository are shown, and not searched.
        _render: (source, env, md) => (env.relativePath.startsWith("source/") ? "" : md.render(source, env)),
      },
    },
    outline: { level: [2, 3] },
    notFound: {
      title: "Page not found",
      quote: "The search finds every page.",
      linkText: "First page",
      linkLabel: "First page",
    },
    externalLinkIcon: false,
    nav: [
      { text: "Start", link: "/start/node", activeMatch: "^/(start|frameworks)/" },
      { text: "Guides", link: "/guide/algebra", activeMatch: "^/(guide|recipes|migrate|reference)/" },
      { text: "Stores", link: "/stores/", activeMatch: "^/stores/" },
      { text: "API", link: "/api/", activeMatch: "^/api/" },
      { text: "Rust", link: "/rust/tidegate_core/index.html", target: "_self" },
      { text: "Playground", link: "/playground/index.html", target: "_self" },
      { text: "GitHub", link: "https://github.com/tidegate/tidegate" },
    ],
    sidebar: { "/api/": api, "/": Object.entries(FOLDERS).flatMap(([folder, section]) => menu(folder, section)) },
    footer: { message: "MIT licensed. Every block of code on these pages is run by the tests." },
  },
});
