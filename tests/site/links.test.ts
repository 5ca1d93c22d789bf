/** Every link in what GitHub shows leads somewhere: to a file that is there, and to a heading of it. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";
import { root } from "../readme/blocks.ts";
import { others, pages } from "./pages.ts";

const prose = (text: string): string => text.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "code");

/** A heading's anchor, as GitHub and VitePress both make it where it is plain words. */
const slug = (heading: string): string =>
  heading
    .replace(/[`*]/g, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");

const anchors = (path: string): string[] =>
  [
    ...readFileSync(path, "utf8")
      .replace(/^```[\s\S]*?^```$/gm, "")
      .matchAll(/^#+ (.*)$/gm),
  ].map(([, heading = ""]) => slug(heading));

describe.each([...others, ...pages])("$path", ({ path, text }) => {
  const links = [...prose(text).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, link = ""]) => link);

  test("its links lead to files and headings", () => {
    const lost = links.filter((link) => {
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? join(root, path) : normalize(join(root, dirname(path), decodeURI(file)));
      if (!existsSync(target)) return true;
      return anchor !== undefined && (statSync(target).isDirectory() || !anchors(target).includes(anchor));
    });
    expect(lost).toEqual([]);
  });
});

test("each page is in the site's menu, and the first page leads to it or to its neighbours", () => {
  const config = readFileSync(join(root, "npm/site/.vitepress/config.mts"), "utf8");
  const missing = pages
    .filter(({ path }) => path !== "npm/site/index.md")
    .filter(({ path }) => !config.includes(`"${/([\w-]+)\.md$/.exec(path)?.[1]}"]`));
  expect(missing.map(({ path }) => path)).toEqual([]);
});
