import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { freePort } from "../support/ports.ts";
import { Program } from "../support/processes.ts";
import { type Block, blocks, complaints, readme, root } from "./blocks.ts";

const run = promisify(execFile);
const found = blocks();

test("has at most 150 lines", () => {
  expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(150);
});

describe("every block of code runs, and prints what its comments say", () => {
  test("the pattern finds every block", () => {
    // Except those of shell commands.
    expect(readme.match(/^```(?!sh$|text$)\w/gm)?.length).toBe(found.length);
    expect(found.map(({ under }) => under)).toEqual(["In front of a server", "The bare limiter"]);
    expect(found.flatMap(({ prints }) => prints).length).toBe(readme.match(/\/\/ →/g)?.length);
  });

  const errors = complaints(found);
  test("the compiler reports no other error", () => expect(errors.get("")).toBeUndefined());
  test.each(found)("$under: compiles under strict settings", ({ source }) => {
    expect(errors.get(source) ?? "").toBe("");
  });

  test("In front of a server: the fourth request gets the response below it", async () => {
    const { file } = found[0] as Block;
    const port = await freePort();
    const server = new Program(process.execPath, [file], {
      cwd: dirname(file),
      env: { ...process.env, PORT: `${port}` },
    });
    try {
      const get = () => fetch(`http://127.0.0.1:${port}/`, { headers: { Connection: "close" } });
      const first = await server.answers(get);
      const responses = [first, await get(), await get(), await get()];
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
      const { status, statusText, headers } = responses[3] as Response;
      const [line, ...fields] = (/```text\n([\s\S]*?)\n```/.exec(readme)?.[1] ?? "").split("\n");
      expect(line).toBe(`HTTP/1.1 ${status} ${statusText}`);
      // Seconds of a wait: they depend on the clock, and on `jitter`.
      const masked = (text: string): string => text.replace(/(t=|Retry-After: )\d+/, "$1n");
      const names = fields.map((field) => field.replace(/:.*/, ""));
      expect(names).toContain("Retry-After");
      expect(names.map((name) => masked(`${name}: ${headers.get(name)}`))).toEqual(fields.map(masked));
    } finally {
      await server.stop();
    }
  });

  test.each(found.slice(1))("$under: it runs", async ({ file, prints }) => {
    const env = { ...process.env, NO_COLOR: "1" };
    const { stdout, stderr } = await run(process.execPath, [file], { cwd: dirname(file), env, timeout: 120_000 });
    expect(stderr).toBe("");
    expect(stdout.split("\n").slice(0, -1)).toEqual(prints);
  });
});

describe("its links and pictures lead to files", () => {
  const links = [...readme.matchAll(/(?:\]\(|(?:src|srcset)=")((?!https?:|#)[^)"#]+)/g)].map(([, path = ""]) => path);
  test.each([...new Set(links)])("%s", (path) => expect(existsSync(join(root, path))).toBe(true));
});
