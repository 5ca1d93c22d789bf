/** The files and folders of the repository that pages link to. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { FOLDERS } from "./folders.mjs";

const SITE = "npm/site";
const site = fileURLToPath(new URL(".", import.meta.url));

/** The path in the repository that a link of a page leads to, or `undefined` for a link that stays in the site. */
export function target(page, href) {
  if (/^([a-z]+:|[/#])/.test(href)) return undefined;
  const path = posix.join(SITE, posix.dirname(page), href.replace(/#.*/, "")).replace(/\/$/, "");
  return path.startsWith(`${SITE}/`) ? undefined : path;
}

/** All of them, sorted. */
export function linked() {
  const folders = Object.keys(FOLDERS).filter((folder) => existsSync(join(site, folder)));
  const pages = folders.flatMap((folder) => readdirSync(join(site, folder)).map((file) => `${folder}/${file}`));
  const found = new Set();
  for (const page of [...pages.filter((file) => file.endsWith(".md")), "index.md"]) {
    const text = readFileSync(join(site, page), "utf8").replace(/^```[\s\S]*?^```$/gm, "");
    for (const [, href] of text.matchAll(/\]\(([^)\s]+)\)/g)) found.add(target(page, href));
  }
  found.delete(undefined);
  return [...found].sort();
}
