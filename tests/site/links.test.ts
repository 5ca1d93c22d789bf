/** Every link of the documents leads to an existing file and heading. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";
import { root } from "../readme/blocks.ts";
import { others, pages } from "./pages.ts";

const prose = (text: string): string => text.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "code");

/** A heading's anchor, if GitHub and VitePress make the same of it: of "Envoy's" one makes `envoys`, the other `envoy-s`. */
const slug = (heading: string): string[] => {
  const text = heading
    .replace(/[`*]/g, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .trim()
    .toLowerCase();
  const github = text.replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
  const site = text.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  return github === site ? [github] : [];
};

const anchors = (path: string): string[] =>
  [
    ...readFileSync(path, "utf8")
      .replace(/^```[\s\S]*?^```$/gm, "")
      .matchAll(/^#+ (.*)$/gm),
  ].flatMap(([, heading = ""]) => slug(heading));

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

test("each page of the site begins with its title, which the menu shows", () => {
  const untitled = pages.filter(({ path, text }) => path !== "npm/site/index.md" && !/^# \S/.test(text));
  expect(untitled.map(({ path }) => path)).toEqual([]);
});
