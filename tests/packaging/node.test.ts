import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { entries, forTests, install, output, root } from "./installed.ts";
import { ANSWERS, use } from "./program.ts";

const user = forTests(install());
const all = entries(user.manifest());

const run = (path: string) => output(process.execPath, [path], { cwd: user.folder }).trim();
const print = "console.log(globalThis.answers);";

describe("the installed package in Node.js", () => {
  test("an ES module decides with what it imports", () => {
    const text = use('import { defineLimits, MINUTE } from "tidegate";') + print;
    expect(run(user.write("with-import.mjs", text))).toBe(ANSWERS);
  });

  test("a CommonJS module decides with what it requires", () => {
    const text = use('const { defineLimits, MINUTE } = require("tidegate");') + print;
    expect(run(user.write("with-require.cjs", text))).toBe(ANSWERS);
  });

  test("`require` and `import` share one copy per process, in every entry", () => {
    const text = `import { createRequire } from "node:module";
      import { defineLimits, InputError, MINUTE } from "tidegate";
      import { memory } from "tidegate/pure";
      const required = createRequire(import.meta.url)("tidegate");
      const store = required.memory();
      const config = { send: { kind: "token bucket", rate: 1, period: MINUTE } };
      const [first, second] = [defineLimits(config, { store }), required.defineLimits(config, { store })];
      let error;
      try { required.memory({ maxKeys: 0 }); } catch (thrown) { error = thrown; }
      console.log(first.limit("send").ok, second.limit("send").ok, error instanceof InputError, memory === required.memory);`;
    expect(run(user.write("both.mjs", text))).toBe("true false true true");
  });

  /** Another copy of the package, as a dependency of an app may install. */
  const copyOf = (name: string, version: string): string => {
    const copy = join(user.folder, "node_modules", name);
    cpSync(join(user.folder, "node_modules/tidegate"), copy, { recursive: true });
    const bounds = join(copy, "dist/engine/generated/bounds.cjs");
    writeFileSync(bounds, readFileSync(bounds, "utf8").replace(`"${user.packed.version}"`, `"${version}"`));
    return `import { defineLimits, MINUTE } from "tidegate";
      import { memory } from "${name}";
      import { shared } from "${name}/shared";
      const config = { send: { kind: "token bucket", rate: 1, period: MINUTE } };
      for (const store of [memory(), shared()]) {
        try {
          const limits = defineLimits(config, { store });
          console.log(limits.limit("send").ok, limits.limit("send").ok);
        } catch (error) { console.log(error.message); }
      }`;
  };

  test("a store of another copy of the same version works", () => {
    const text = copyOf("same-version", user.packed.version);
    expect(run(user.write("same.mjs", text)).split("\n")).toEqual(["true false", "true false"]);
  });

  test("a store of another version is an error that names both versions", () => {
    const text = copyOf("other-version", "9.9.9");
    const error = `\`store\` must be made by the tidegate that uses it, which is ${user.packed.version}: install one version; got a store made by tidegate 9.9.9`;
    expect(run(user.write("other.mjs", text)).split("\n")).toEqual([error, error]);
  });

  test("without React installed the hook's error names React; with it the hook loads", () => {
    const text = `import("tidegate/react").then(
      ({ useRateLimit }) => console.log(typeof useRateLimit),
      ({ message }) => console.log(message));`;
    const path = user.write("with-react.mjs", text);
    expect(run(path)).toContain("Cannot find module 'react'");
    symlinkSync(join(root, "node_modules/react"), join(user.folder, "node_modules/react"), "junction");
    expect(run(path)).toBe("function");
  });

  test("every entry loads, with `import` and with `require`, and exports something", () => {
    // The peers of a test before, and Nest's, whose exceptions its entry needs.
    symlinkSync(join(root, "node_modules/@nestjs"), join(user.folder, "node_modules/@nestjs"), "junction");
    const text = `import { createRequire } from "node:module";
      const require = createRequire(import.meta.url);
      const empty = [];
      for (const entry of ${JSON.stringify(all)}) {
        const imported = await import(entry);
        const types = entry === "tidegate/store";
        if (!types && Object.keys(imported).length === 0) empty.push(entry);
        require(entry);
      }
      console.log(JSON.stringify(empty));`;
    expect(run(user.write("entries.mjs", text))).toBe("[]");
  });

  test("`npx tidegate` runs, and its exit codes are those of its help", () => {
    const bin = join(user.folder, "node_modules", ".bin", process.platform === "win32" ? "tidegate.cmd" : "tidegate");
    expect(output(bin, ["--version"]).trim()).toBe(user.packed.version);
    expect(output(bin, ["headers", "--rate", "10", "--period", "60000"])).toContain('RateLimit: "default";r=9;t=54');
    const { status, stderr } = spawnSync(bin, ["heders"], { encoding: "utf8", shell: process.platform === "win32" });
    expect([status, stderr]).toEqual([2, 'tidegate: there is no command "heders"; did you mean headers?\n']);
  });

  test("an entry that package.json does not name cannot be reached", () => {
    const text = 'import("tidegate/dist/index.js").catch((error) => console.log(error.code));';
    expect(run(user.write("inside.mjs", text))).toBe("ERR_PACKAGE_PATH_NOT_EXPORTED");
  });

  test("an error's stack names functions, where they are in files that have the path of their source", () => {
    const text = `import { defineLimits, MINUTE } from "tidegate";
      import { redis } from "tidegate/redis";
      const stacks = [];
      const bucket = (rate) => ({ kind: "token bucket", rate, period: MINUTE });
      const mistakes = [() => defineLimits({ a: bucket(-1) }), () => defineLimits({ a: bucket(1) }).limit("a", { count: -1 }), () => redis(3)];
      for (const mistake of mistakes) try { mistake(); } catch ({ stack }) { stacks.push(stack); }
      console.log(JSON.stringify(stacks));`;
    const stacks = JSON.parse(run(user.write("stacks.mjs", text))) as string[];
    for (const stack of stacks) {
      const frames = [...stack.matchAll(/at (?:new |Object\.)?(\S+) \(.*\/tidegate\/dist\/(.+)\.cjs:(\d+):\d+\)/g)];
      expect(frames.length, stack).toBeGreaterThan(1);
      for (const [frame, called = "", path, line] of frames) {
        expect(existsSync(join(root, `npm/tidegate/src/${path}.ts`)), frame).toBe(true);
        const lines = readFileSync(join(user.folder, `node_modules/tidegate/dist/${path}.cjs`), "utf8").split("\n");
        expect((lines[Number(line) - 1] as string).length, frame).toBeLessThan(300);
        const name = called.split(".").at(-1) as string;
        const defined = lines.slice(0, Number(line)).some((text) => new RegExp(`(^|\\s)${name}\\b.*[{>]`).test(text));
        expect(defined, frame).toBe(true);
      }
    }
  });

  test("a worker thread has its own copy", () => {
    const worker = `${use('import { defineLimits, MINUTE } from "tidegate";')}
      import { parentPort } from "node:worker_threads"; parentPort.postMessage(globalThis.answers);`;
    user.write("worker.mjs", worker);
    const text = `import { Worker } from "node:worker_threads";
      new Worker(new URL("worker.mjs", import.meta.url)).on("message", (text) => console.log(text));`;
    expect(run(user.write("threads.mjs", text))).toBe(ANSWERS);
  });
});
