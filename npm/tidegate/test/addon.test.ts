/** What `file()` throws where the addon does not load; tests/threads has `shared()`, tests/packaging both from the tarball. */
import { mkdirSync, writeFileSync } from "node:fs";
import modules from "node:module";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { remove, temporaryFolder } from "../../../tests/support/folders.ts";
import { PLATFORMS } from "../../scripts/linked.mjs";
import { here, loadAddon, packageOf } from "../src/engine/addon.ts";
import type { StoreError } from "../src/index.ts";
import { file } from "../src/stores/file.ts";

const missing = new Error("cannot find @tidegate/linux-x64-gnu", { cause: new Error("libc is too old") });

/** Opens a folder where the addon does not load. */
const open = (path: string | URL, error = missing) => {
  const require = (): unknown => {
    throw error;
  };
  return file(path, {}, { platform: "linux", arch: "x64", musl: false, require });
};

test("file() throws the whole chain of causes, and how to install the addon", () => {
  const opened = () => open("/a/folder");
  expect(opened).toThrow("cannot find @tidegate/linux-x64-gnu; caused by: libc is too old");
  expect(opened).toThrow("install the package @tidegate/linux-x64-gnu, or use a store");
  expect(opened).toThrow(
    expect.objectContaining<Partial<StoreError>>({ store: "file", operation: "open", cause: missing }),
  );
});

test("causes that lead back to the error are each in the message once", () => {
  const error = new Error("cannot open the library");
  error.cause = new Error("no such file", { cause: error });
  expect(() => open("/a/folder", error)).toThrow(/ load: cannot open the library; caused by: no such file; install/);
});

test("names the package to install where there is one, and otherwise that the platform has none", () => {
  const require = (): unknown => {
    throw missing;
  };
  const machines = ["android", "darwin", "freebsd", "linux", "win32"].flatMap((platform) =>
    ["arm", "arm64", "ia32", "ppc64", "riscv64", "x64"].flatMap((arch) =>
      [false, true].map((musl) => ({ platform, arch, musl, require })),
    ),
  );
  const packages = new Set<string>();
  for (const machine of machines) {
    const name = packageOf(machine);
    const found = loadAddon(machine);
    const remedy = "remedy" in found ? found.remedy : "";
    if (remedy.includes("install")) {
      expect(remedy).toBe(`install the package ${name}`);
      packages.add(name);
    } else {
      expect(remedy).toBe(`use a supported platform: ${machine.platform}-${machine.arch} is not one`);
    }
  }
  expect([...packages].sort()).toEqual(Object.keys(PLATFORMS).map((platform) => `@tidegate/${platform}`));
});

test("a URL that is no path of this system throws an error that names it", () => {
  const message = "`path` must be the path of a folder, a string or a file: URL; got ";
  expect(() => file(new URL("file:///a%2Fb"))).toThrow(`${message}file:///a%2Fb`);
  expect(() => file(new URL("http://user:secret@localhost/a"))).toThrow(/; got a http: URL$/);
});

test("the text of a URL is refused as a path, without its password in the message", () => {
  for (const scheme of ["redis", "rediss", "postgres", "file"]) {
    const text = `${scheme}://user:secret@localhost/0`;
    expect(() => open(text)).toThrow(new RegExp(`^\`path\` must be .*; got the text of a ${scheme}: URL$`));
  }
  for (const path of ["C://limits", "redis:/limits", "./redis://limits"]) {
    expect(() => open(path)).toThrow("cannot find @tidegate/linux-x64-gnu");
  }
});

test("a URL of another class is accepted: in jsdom, the page's URL is not that of Node.js", () => {
  const foreign = (text: string): URL => {
    const { href, protocol, hostname, pathname, host, search, hash } = new URL(text);
    return { href, protocol, hostname, pathname, host, search, hash } as URL;
  };
  // The path was read.
  expect(() => open(foreign("file:///a/folder"))).toThrow("cannot find @tidegate/linux-x64-gnu");
  expect(() => open(foreign("http://localhost/a"))).toThrow("`path` must be the path of a folder");
  expect(() => open(foreign("http://localhost/a"))).toThrow("got a http: URL");
});

test("the C library is looked up once, however many folders are opened", () => {
  here();
  const report = vi.spyOn(process.report, "getReport");
  here();
  expect(report).not.toHaveBeenCalled();
});

test("the addon is not looked up in the folder that the program runs in, where anyone may have left a package", () => {
  const folder = temporaryFolder("runs");
  onTestFinished(() => remove(folder));
  const left = join(folder, "node_modules", "left");
  mkdirSync(left, { recursive: true });
  writeFileSync(join(left, "index.js"), "module.exports = {};");
  vi.spyOn(process, "cwd").mockReturnValue(folder);
  expect(() => here().require("left")).toThrow("Cannot find module 'left'");
});

test("in a bundle for pages, the error has the cause: node:module is absent", () => {
  vi.spyOn(modules, "createRequire").mockImplementation(() => {
    throw new TypeError("createRequire is not a function");
  });
  expect(() => file("/a/folder", {}, here())).toThrow("createRequire is not a function");
});
