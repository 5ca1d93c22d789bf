/** The site's pages, as they are written. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
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

export const pages: readonly Page[] = [
  "npm/site/index.md",
  ...["start", "guide", "recipes", "migrate"].flatMap((folder) => inside(`npm/site/${folder}`)),
].map(at);

/** What GitHub shows besides, and links among. */
export const others: readonly Page[] = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(at);
