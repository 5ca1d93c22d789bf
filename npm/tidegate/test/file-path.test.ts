/** A file: URL of another class than the realm's own: Node.js makes its own in jsdom, and jsdom's is not that of Node.js. */
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { file } from "../src/stores/file.ts";

/** A URL as another class has it. */
const foreign = (text: string): URL => {
  const { href, protocol, hostname, pathname, host, search, hash } = new URL(text);
  return { href, protocol, hostname, pathname, host, search, hash } as URL;
};

test("is the path of its folder", () => {
  const inside = pathToFileURL(import.meta.filename);
  // A file, where no folder can be: the path was read.
  expect(() => file(foreign(`${inside.href}/none`))).toThrow(expect.objectContaining({ code: "TIDEGATE_STORE" }));
});

test("with another host than this one is refused, and shown", () => {
  const rule = "`path` must be the path of a folder, a string or a file: URL; got https://example.com/";
  expect(() => file(foreign("https://example.com/"))).toThrow(rule);
});
