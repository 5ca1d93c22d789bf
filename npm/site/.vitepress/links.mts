/**
 * Links to files of the repository are relative, so that GitHub follows them. The site has a page for each such file, so that
 * it works offline: `source/[path].md`, whose paths are the links of all pages.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import type { MarkdownRenderer } from "vitepress";
import { linked, target } from "../linked.mjs";

const root = fileURLToPath(new URL("../../..", import.meta.url));

const isFolder = (path: string): boolean => statSync(join(root, path)).isDirectory();

/** The page of a file; of a folder, the page that lists it. VitePress takes a link that ends in `.md` for a page of its own. */
export const pageOf = (path: string): string => (isFolder(path) ? `${path}/index` : path.replace(/\.md$/, "-md"));

export function sourceLinks(md: MarkdownRenderer): void {
  // Before VitePress looks at links, which would make a page of every `.md`.
  md.core.ruler.push("source-links", ({ tokens, env }) => {
    const { relativePath } = env as { relativePath?: string };
    if (relativePath === undefined || relativePath.startsWith("source/")) return; // a title alone, or one of these pages
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === "link_open" ? token.attrGet("href") : null;
      const path = href === null ? undefined : target(relativePath, href);
      if (path !== undefined) token.attrSet("href", `/source/${pageOf(path)}.html`);
    }
  });
}

const LANGUAGES: Readonly<Record<string, string>> = {
  mjs: "js",
  mts: "ts",
  rs: "rust",
  md: "md",
  lua: "lua",
  sql: "sql",
};
const TEXT = /\.(rs|toml|ts|tsx|mts|js|jsx|mjs|jsonc?|md|lua|sql|ya?ml)$|^LICENSE$/;

function contentOf(path: string): string {
  const title = `# ${path}\n\n`;
  if (isFolder(path)) {
    const names = readdirSync(join(root, path), { withFileTypes: true })
      .filter(({ name }) => !/^(node_modules|target|dist|\.)/.test(name))
      .map((entry) => `- \`${entry.name}${entry.isDirectory() ? "/" : ""}\``);
    return `${title}A folder of the repository:\n\n${names.sort().join("\n")}\n`;
  }
  const text = readFileSync(join(root, path), "utf8");
  if (!TEXT.test(posix.basename(path)) || text.length > 60_000) {
    return `${title}A file of the repository, ${Math.ceil(text.length / 1000)} kB, too long for a page.\n`;
  }
  const extension = /\.(\w+)$/.exec(path)?.[1] ?? "text";
  const fence = "`".repeat(1 + Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length)));
  return `${title}${fence}${LANGUAGES[extension] ?? extension}\n${text.trimEnd()}\n${fence}\n`;
}

/** A page for every file and folder of the repository that a page links to. */
export const sources = (): { params: { path: string }; content: string }[] =>
  linked().map((path) => ({ params: { path: pageOf(path) }, content: contentOf(path) }));
