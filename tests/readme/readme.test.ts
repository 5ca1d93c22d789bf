import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RedisServer } from "../stores/redis/server.ts";
import { blocks, complaints, isInstalled, readme, root } from "./blocks.ts";

const run = promisify(execFile);
const found = blocks();

const noRedis = !isInstalled("redis-server");
if (noRedis) console.warn("!!! THE README'S REDIS BLOCK IS NOT RUN: apt-get install redis-server");

describe("every block of code runs, and prints what its comments say", () => {
  let server: RedisServer | undefined;
  beforeAll(async () => {
    if (!noRedis) server = await RedisServer.start();
  });
  afterAll(() => server?.stop());

  test("there are as many as are looked for", () => {
    // What a shell runs and what it shows is not of them.
    expect(readme.match(/^```(?!sh$|text$)\w/gm)?.length).toBe(found.length);
    expect(found.length).toBeGreaterThanOrEqual(4);
    expect(found.flatMap(({ prints }) => prints).length).toBe(readme.match(/\/\/ →/g)?.length);
  });

  const said = complaints(found);
  test("the compiler has nothing to say besides", () => expect(said.get("")).toBeUndefined());
  test.each(found)("$under: it compiles, strictly", ({ source }) => {
    expect(said.get(source) ?? "").toBe("");
  });

  const needsRedis = (code: string): boolean => code.includes("ioredis");
  test.each(found.filter(({ code }) => !needsRedis(code)))("$under", ({ file, prints }) => printed(file, prints));
  // Calls on a store have a deadline, which a loaded machine may miss.
  describe.skipIf(noRedis)("on redis-server", { retry: 2 }, () => {
    test.each(found.filter(({ code }) => needsRedis(code)))("$under", ({ file, prints }) => printed(file, prints));
  });

  async function printed(file: string, prints: readonly string[]): Promise<void> {
    const env = { ...process.env, NO_COLOR: "1", REDIS_URL: `redis://127.0.0.1:${server?.port}` };
    const { stdout, stderr } = await run(process.execPath, [file], { cwd: dirname(file), env, timeout: 30_000 });
    expect(stderr).toBe("");
    expect(stdout.split("\n").slice(0, -1)).toEqual(prints);
  }

  test("the first one, twelve lines, grants twenty and denies the next", async () => {
    const [first] = found as [(typeof found)[0]];
    expect(first.code.trim().split("\n")).toHaveLength(12);
    const { handle } = (await import(/* @vite-ignore */ pathToFileURL(first.file).href)) as {
      handle(userId: string): Response;
    };
    for (let i = 0; i < 20; i++) expect(handle("a").status).toBe(200);
    const denied = handle("a");
    expect([denied.status, denied.headers.get("Retry-After")]).toEqual([429, "6"]);
    expect(denied.headers.get("RateLimit")).toBe('"sendMessage";r=0;t=6');
    expect(handle("b").status).toBe(200);
  });
});

describe("what it points to is there", () => {
  const links = [...readme.matchAll(/\]\(((?!https?:|#)[^)]+)\)/g)].map(([, path = ""]) => path);
  test.each([...new Set(links)])("%s", (path) => expect(existsSync(join(root, path))).toBe(true));

  const promises = [...readme.matchAll(/^\| [^|]+ \| `([^`]+)` in \[[^\]]+\]\(([^)]+)\) \|$/gm)];
  test("every promise names a test", () => {
    const section = readme.slice(readme.indexOf("## What is promised"), readme.indexOf("## Develop"));
    expect(section.match(/^\| /gm)?.length).toBe(promises.length + 1); // and the head
  });
  test.each(promises.map(([, name = "", path = ""]) => [name, path]))("%s in %s", (name, path) => {
    const text = readFileSync(join(root, path), "utf8");
    const literal = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const quote = "[\"'`]";
    // In TypeScript it is the end of the name of a test, of several alike, or of a group of them.
    const declared = path.endsWith(".rs")
      ? `fn ${literal}\\(`
      : `(test|describe)(\\.each\\([^)]*\\))?\\(\\s*${quote}.*${literal}${quote}`;
    expect(text).toMatch(new RegExp(declared));
  });
});
