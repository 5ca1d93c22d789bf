/** What `file()` throws where the addon does not load; tests/threads has `shared()`, tests/packaging both from the tarball. */
import modules from "node:module";
import { expect, test, vi } from "vitest";
import { here } from "../src/engine/addon.ts";
import type { StoreError } from "../src/index.ts";
import { file } from "../src/stores/file.ts";

const missing = new Error("cannot find @tidegate/linux-x64-gnu", { cause: new Error("libc is too old") });

test("file() throws the whole chain of causes, and how to install the addon", () => {
  const require = (): unknown => {
    throw missing;
  };
  const opened = () => file("/a/folder", {}, { platform: "linux", arch: "x64", musl: false, require });
  expect(opened).toThrow("cannot find @tidegate/linux-x64-gnu; caused by: libc is too old");
  expect(opened).toThrow("install the package @tidegate/linux-x64-gnu, or use a store");
  expect(opened).toThrow(
    expect.objectContaining<Partial<StoreError>>({ store: "file", operation: "open", cause: missing }),
  );
});

test("a URL that is no path of this system is a mistake that names it", () => {
  const message = "`path` must be the path of a folder, a string or a file: URL; got ";
  for (const url of ["file:///a%2Fb", "http://localhost/a"]) expect(() => file(new URL(url))).toThrow(message + url);
});

test("in a bundle for pages, which lacks node:module, the cause is that and not undefined", () => {
  vi.spyOn(modules, "createRequire").mockImplementation(() => {
    throw new TypeError("createRequire is not a function");
  });
  expect(() => file("/a/folder", {}, here())).toThrow("createRequire is not a function");
  vi.restoreAllMocks();
});
