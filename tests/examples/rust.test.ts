import { afterAll, beforeAll, expect, test } from "vitest";
import { type Running, start } from "../support/processes.ts";
import { root } from "./process.ts";

let server: Running;
beforeAll(async () => {
  const run = ["run", "--quiet", "-p", "tidegate-example-rust"];
  server = await start("cargo", run, /(http:\/\/127\.0\.0\.1:\d+).*\n/, {
    cwd: root,
    env: { ...process.env, PORT: "0" },
  });
}, 600_000);
afterAll(() => server?.stop());

test("three concurrent requests are granted; Retry-After of the next is exact to the second", async () => {
  const url = server.ready[1] as string;
  const answers = await Promise.all(Array.from({ length: 5 }, () => fetch(url)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429, 429]);
  const seconds = answers
    .filter(({ status }) => status === 429)
    .map(({ headers }) => Number(headers.get("retry-after")));
  for (const wait of seconds) expect(wait >= 1 && wait <= 10).toBe(true);
});
