/** Links to files of the repository: relative ones, so that GitHub follows them; here they lead there. */
import { posix } from "node:path";
import type { MarkdownRenderer } from "vitepress";

const SITE = "npm/site";
const FILES = "https://github.com/tidegate/tidegate/blob/main/";

export function repositoryLinks(md: MarkdownRenderer): void {
  md.core.ruler.push("repository-links", ({ tokens, env }) => {
    const { relativePath } = env as { relativePath?: string };
    if (relativePath === undefined) return; // a title alone
    const folder = posix.join(SITE, posix.dirname(relativePath));
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === "link_open" ? token.attrGet("href") : null;
      if (href === null || /^([a-z]+:|[/#])/.test(href)) continue;
      const path = posix.join(folder, href);
      if (!path.startsWith(`${SITE}/`)) token.attrSet("href", FILES + path);
    }
  });
}
