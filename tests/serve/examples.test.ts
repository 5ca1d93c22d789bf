import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { PolicyDocument } from "tidegate/policies";
import { root, type Served, serving } from "./service.ts";

const folder = join(root, "examples/serve");
let service: Served;

beforeAll(async () => {
  const document = JSON.parse(readFileSync(join(folder, "policies.json"), "utf8")) as PolicyDocument;
  service = await serving(document);
});
afterAll(() => service[Symbol.asyncDispose]());

/** The output of an example, as the page's reader runs it. */
async function run(program: string, file: string): Promise<string> {
  const env = { ...process.env, TIDEGATE_URL: service.url };
  const child = spawn(program, [join(folder, file)], { env, stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  expect(code).toBe(0);
  return output;
}

test("curl prints the headers and the decision", async () => {
  const output = await run("sh", "decide.sh");
  expect(output).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*^ratelimit: "api";r=2;t=\d+\r$[\s\S]*^\{"ok":true,/im);
});

test("Python prints what is left, then the time to wait", async () => {
  // The wait is a minute less the time that the four calls took.
  expect(await run("python3", "decide.py")).toMatch(/^200 2 left\n200 1 left\n200 0 left\n429 (60|[345]\d) s\n$/);
});
