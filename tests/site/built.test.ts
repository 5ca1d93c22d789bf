/** The site as `npm run docs` builds it: complete and self-contained. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { folders } from "./pages.ts";
import { dist, fileOf } from "./served.ts";

const files = readdirSync(dist, { recursive: true }).map((file) => String(file).replaceAll("\\", "/"));
const read = (file: string): string => readFileSync(join(dist, file), "utf8");
const html = files.filter((file) => file.endsWith(".html"));
/** Pages under rust/ are rustdoc's. */
const ours = html.filter((file) => !file.startsWith("rust/"));

test("has every page", () => {
  const source = join(dist, "..");
  const pages = [...folders, "api"].flatMap((folder) =>
    readdirSync(join(source, folder), { recursive: true })
      .map((file) => `${folder}/${String(file).replaceAll("\\", "/")}`)
      .filter((file) => file.endsWith(".md"))
      .map((file) => file.replace(/\.md$/, ".html")),
  );
  expect(pages.length).toBeGreaterThan(40);
  expect(ours).toEqual(expect.arrayContaining([...pages, "index.html", "playground/index.html"]));
  for (const crate of ["core", "table", "policy"]) expect(html).toContain(`rust/tidegate_${crate}/index.html`);
});

test("each page has a description of its own, which search engines show", () => {
  const guides = ours.filter((page) => !/^(api|source|playground)\/|^404/.test(page));
  const described = guides.map((page) => [
    page,
    /<meta name="description" content="([^"]*)"/.exec(read(page))?.[1] ?? "",
  ]);
  expect(described.filter(([, text = ""]) => text.length < 30 || text.length > 170)).toEqual([]);
  expect(new Set(described.map(([, text]) => text)).size).toBe(guides.length);
});

test("an API page starts with the entry's main function, and ends with types", () => {
  const api = join(dist, "..", "api/tidegate");
  for (const [file, first] of Object.entries({
    "../tidegate.md": "defineLimits()",
    "express.md": "rateLimit()",
    "redis.md": "redis()",
    "durable-object.md": "durableObject()",
    "client.md": "throttle()",
  })) {
    const page = readFileSync(join(api, file), "utf8");
    expect(/^### (.*)$/m.exec(page)?.[1], file).toBe(first);
    const groups = [...page.matchAll(/^## (.*)$/gm)].map(([, title = ""]) => title);
    expect(groups.indexOf("Functions"), file).toBeLessThan(groups.indexOf("Interfaces"));
  }
});

test("API pages have the fields of options that no entry exports, and none of JavaScript's own errors", () => {
  const page = (file: string) => readFileSync(join(dist, "..", "api", file), "utf8");
  for (const field of ["count", "config", "reserve", "throws"])
    expect(page("tidegate.md")).toContain(`\`${field}?\` |`);
  expect(page("tidegate/express.md")).toContain("[Options](fetch.md#options)");
  for (const field of ["shadow", "settle", "block"]) expect(page("tidegate/fetch.md")).toContain(`\`${field}?\` |`);
  expect(page("tidegate.md")).not.toContain("captureStackTrace");
});

test("no link leads to a source file on the web", () => {
  const found = ours.flatMap((page) => {
    const links = [...read(page).matchAll(/href="(https:\/\/github\.com\/tidegate\/tidegate\/(?:blob|tree)\/[^"]+)"/g)];
    // Links of a shown file are its own.
    return page.startsWith("source/") ? [] : links.map(([, url]) => `${page}: ${url}`);
  });
  expect(found).toEqual([]);
});

test("loads nothing from other hosts", () => {
  const LOADS = [
    /<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc="((?:https?:)?\/\/[^"]+)"/g,
    /<link\b[^>]*\shref="((?:https?:)?\/\/[^"]+)"/g,
    /(?:url\(|@import\s+)["']?((?:https?:)?\/\/[^"')]+)/g,
    /\b(?:fetch|import|importScripts)\(\s*["'`](https?:\/\/[^"'`]+)/g,
  ];
  const found = files
    .filter((file) => /\.(html|css|js)$/.test(file))
    .flatMap((file) => {
      // Shown code is not run.
      const text = file.endsWith(".html") ? read(file).replace(/<pre[\s\S]*?<\/pre>/g, "") : read(file);
      // Scripts contain the pages' text too, with the URLs of examples.
      const patterns = /^assets\/.*\.md\./.test(file) ? LOADS.slice(0, 3) : LOADS;
      return patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, url]) => `${file}: ${url}`));
    });
  // VitePress loads missing icons from there. These pages have none, and looks.test.ts checks every request.
  expect(found.filter((line) => !/theme\.[^/]*\.js: https:\/\/api\.iconify\.design\//.test(line))).toEqual([]);
});

test("every link leads to an existing page and heading", () => {
  const ids = new Map<string, Set<string>>();
  const idsOf = (file: string): Set<string> => {
    let known = ids.get(file);
    if (known === undefined) {
      known = new Set([...readFileSync(file, "utf8").matchAll(/\s(?:id|name)="([^"]+)"/g)].map(([, id = ""]) => id));
      ids.set(file, known);
    }
    return known;
  };
  const lost: string[] = [];
  for (const page of ours) {
    for (const [, link = ""] of read(page).matchAll(/\s(?:href|src)="([^"]+)"/g)) {
      if (/^(https?:|data:|mailto:)/.test(link)) continue;
      const url = new URL(link.replaceAll("&amp;", "&"), `http://site/${page}`);
      const file = fileOf(url.pathname);
      const anchor = decodeURIComponent(url.hash.slice(1));
      if (file === undefined || (anchor !== "" && file.endsWith(".html") && !idsOf(file).has(anchor))) {
        lost.push(`${page}: ${link}`);
      } else if (relative(dist, file).startsWith("..")) lost.push(`${page}: ${link} leaves the site`);
    }
  }
  expect([...new Set(lost)]).toEqual([]);
});
