/** Every block of code on every page compiles, runs, and prints what its comments say, or is a file that other tests run. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMMANDS } from "../../npm/tidegate/src/cli/main.ts";
import { type Block, blocks, complaints, fences, isInstalled, root } from "../readme/blocks.ts";
import { RedisServer } from "../stores/redis/server.ts";
import { pages } from "./pages.ts";

const run = promisify(execFile);
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const all = pages.flatMap(({ path, text }) => fences(text).map((fence) => ({ ...fence, path })));
const written = pages.flatMap(({ path, text }) => {
  const folder = `node_modules/.cache/tidegate/pages/${path.replace(/^npm\/site\//, "").replace(/\W/g, "-")}`;
  return blocks(text, folder).map((block) => ({ ...block, path }));
});
const title = ({ path, under }: { path: string; under: string }): string => `${path}: ${under}`;
const named = <T extends { path: string; under: string }>(them: readonly T[]) =>
  them.map((it) => [title(it), it] as const);

test("each block is marked with its test", () => {
  const odd = all.filter(({ language, mark }) => {
    if (mark !== "" && !/^(is|in) \S+$|^not run: .{10}/.test(mark)) return true;
    return mark === "" && !/^(tsx?|js|sh|text)$/.test(language);
  });
  expect(odd.map(title)).toEqual([]);
  // The pattern misses none.
  const opened = pages.flatMap(({ text }) => text.match(/^```/gm) ?? []).length;
  expect(opened).toBe(2 * all.length);
});

const same = (text: string): string => text.replace(/^[ \t]*\/\/[!/] ?/gm, "").replace(/^[ \t]+/gm, "");
test.each(named(all.filter(({ mark }) => mark.startsWith("is "))))("%s is the file", (_, { mark, code }) => {
  expect(code).toBe(read(mark.slice(3)));
});
test.each(named(all.filter(({ mark }) => mark.startsWith("in "))))("%s is in the file", (_, { mark, code }) => {
  expect(same(read(mark.slice(3)))).toContain(same(code));
});

describe("TypeScript", () => {
  const errors = complaints(written);
  test("the compiler reports nothing else", () => expect(errors.get("")).toBeUndefined());
  const typed = written.filter(({ language }) => /^tsx?$/.test(language));
  test.each(named(typed))("%s compiles, strictly", (_, { source }) => expect(errors.get(source) ?? "").toBe(""));
});

const runs = written.filter(({ mark }) => mark === "");
const needsRedis = ({ code }: Block): boolean => code.includes("ioredis");
const noRedis = !isInstalled("redis-server");
if (noRedis) console.warn("!!! THE SITE'S REDIS BLOCKS ARE NOT RUN: apt-get install redis-server");

describe("runs", () => {
  let server: RedisServer | undefined;
  beforeAll(async () => {
    if (!noRedis) server = await RedisServer.start();
  });
  afterAll(() => server?.stop());

  test.each(named(runs.filter((block) => !needsRedis(block))))("%s prints what its comments state", (_, block) =>
    prints(block),
  );
  describe.skipIf(noRedis)("on redis-server", () => {
    test.each(named(runs.filter(needsRedis)))("%s prints what its comments say", (_, block) => prints(block));
  });

  async function prints({ file, prints }: Block): Promise<void> {
    const env = { ...process.env, NO_COLOR: "1", REDIS_URL: `redis://127.0.0.1:${server?.port}` };
    const { stdout, stderr } = await run(process.execPath, [file], { cwd: dirname(file), env, timeout: 120_000 });
    expect(stderr).toBe("");
    expect(stdout.split("\n").slice(0, -1)).toEqual(prints);
  }
});

describe("shell commands use existing programs and options", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const lines = all
    .filter(({ language, mark }) => language === "sh" && !mark.startsWith("is "))
    .flatMap(({ code, ...where }) =>
      code
        .trimEnd()
        .split("\n")
        .map((line) => ({ ...where, line })),
    );
  /** The valid arguments of each program. */
  const KNOWN: Record<string, (words: readonly string[]) => boolean> = {
    npm: ([command = "", what = ""]) =>
      ["install", "start", "test"].includes(command) || (command === "run" && what in scripts),
    npx: ([program = "", command = ""]) =>
      program === "tidegate"
        ? COMMANDS.some(({ name }) => name === command)
        : ["wrangler", "convex", "expo", "tidegate-replay", "tidegate-serve"].includes(program),
    node: ([file = ""]) => existsSync(join(root, file)),
    cargo: ([command = ""]) => ["add", "run", "doc"].includes(command),
    bun: ([command = ""]) => ["add", "run"].includes(command),
    deno: ([command = ""]) => ["add", "run"].includes(command),
    git: ([command = ""]) => command === "clone",
    cd: () => true,
  };
  test.each(lines.map((it) => [it.line, it] as const))("%s", (line) => {
    const [program = "", ...words] = line.replace(/\s+#.*$/, "").split(/\s+/);
    expect(Object.keys(KNOWN)).toContain(program);
    expect(KNOWN[program]?.(words)).toBe(true);
  });
});

test("configurations parse", () => {
  for (const { language, code, path } of all.filter(({ language }) => /^jsonc?$/.test(language))) {
    const { error } = ts.parseConfigFileTextToJson(path, code);
    expect(error, `${path} ${language}`).toBeUndefined();
  }
});
