/** No step of `npm test` can keep the run from its last line. */
import { expect, test } from "vitest";
import { watch } from "../../npm/scripts/watch.mjs";

const node = (source: string): [string, string[]] => [process.execPath, ["-e", source]];
const forever = "setInterval(() => {}, 1000)";

test("a step that does not end is ended, and reports what it had written and what still ran", async () => {
  const { status, output } = await watch(...node(`console.log("begun"); ${forever}`), {
    limitMs: 2000,
    leftOpenMs: 100,
  });
  expect(status).not.toBe(0);
  expect(output).toMatch(/^begun\n\n!!! not done after 0 minutes, and so ended\. Running were:\n.*setInterval/);
});

test("a step that ignores the signal is ended", async () => {
  const deaf = `process.on("SIGTERM", () => {}); ${forever}`;
  expect((await watch(...node(deaf), { limitMs: 2000, leftOpenMs: 100 })).status).not.toBe(0);
});

test("a step ends although a process that it has left keeps its output open", async () => {
  const leaves = `require("node:child_process").spawn(process.execPath, ["-e", "${forever}"], { stdio: "inherit" }).unref()`;
  const { status, output } = await watch(...node(leaves), { leftOpenMs: 500 });
  expect(status).toBe(0);
  expect(output).toMatch(/its program has ended, but not what that started:\n.*setInterval/);
});

test("a program that does not exist fails its step", async () => {
  const { status, output } = await watch("no-such-program", []);
  expect(status).toBe(1);
  expect(output).toContain("ENOENT");
});
