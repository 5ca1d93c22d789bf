/** The built index of the site's search, searched as the page does. */
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { searchOptions } from "../../npm/site/search.mjs";
import { dist } from "./served.ts";

interface Index {
  search(words: string, options: object): { id: string }[];
}
interface Library {
  loadJSON(json: string, options: object): Index;
}

const chunks = join(dist, "assets/chunks");
const file = readdirSync(chunks).find((name) => name.startsWith("@localSearchIndexroot")) as string;
const { default: json } = (await import(/* @vite-ignore */ pathToFileURL(join(chunks, file)).href)) as {
  default: string;
};
const library: unknown = createRequire(join(dist, "../package.json"))("minisearch");
// The fields that VitePress has.
const index = (library as Library).loadJSON(json, {
  fields: ["title", "titles", "text"],
  storeFields: ["title", "titles"],
});

const pagesFor = (words: string): string[] => index.search(words, searchOptions).map(({ id }) => id.replace(/#.*/, ""));

test.each([
  ["lambda", "/start/node.html"],
  ["koa", "/start/node.html"],
  ["graphql", "/recipes/graphql.html"],
  ["websocket", "/recipes/websockets.html"],
  ["skipSuccessfulRequests", "/migrate/express-rate-limit.html"],
  ["jitter", "/guide/http.html"],
])("%s is found on %s", (words, page) => {
  expect(pagesFor(words)).toContain(page);
});

test.each(["lease", "jitter", "express", "redis", "outage", "errors", "policy", "fixed window", "memory"])(
  "for %s the first results are guides, not API pages",
  (words) => {
    const first = pagesFor(words).slice(0, 3);
    expect(first).toHaveLength(3);
    expect(first.filter((page) => page.includes("/api/"))).toEqual([]);
  },
);

test("API pages are found, and shown files of the repository are not", () => {
  expect(pagesFor("TidegateObject").some((page) => page.includes("/api/"))).toBe(true);
  const all = ["test", "server", "limits"].flatMap(pagesFor);
  expect(all.filter((page) => page.startsWith("/source/"))).toEqual([]);
});
