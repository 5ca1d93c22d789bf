/** The sources of the site's pages. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FOLDERS } from "../../npm/site/folders.mjs";
import { root } from "../readme/blocks.ts";

export interface Page {
  /** Below the repository's root. */
  readonly path: string;
  readonly text: string;
}

const at = (path: string): Page => ({ path, text: readFileSync(join(root, path), "utf8") });
const inside = (folder: string): string[] =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .sort()
    .map((name) => `${folder}/${name}`);

/** The existing folders of pages. */
export const folders: readonly string[] = Object.keys(FOLDERS).filter((folder) =>
  existsSync(join(root, "npm/site", folder)),
);

export const pages: readonly Page[] = [
  "npm/site/index.md",
  ...folders.flatMap((folder) => inside(`npm/site/${folder}`)),
].map(at);

/** Other documents of the repository. */
export const others: readonly Page[] = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(at);
