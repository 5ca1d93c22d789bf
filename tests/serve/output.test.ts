/** Output that cannot be written: a disk that is full, which `/dev/full` of Linux always is, or a reader that has ended. */
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { BIN as TIDEGATE } from "./cli.ts";
import { BIN as SERVE, root, serving } from "./service.ts";

const REPLAY = join(root, "npm/tidegate-replay/dist/bin.js");
const LIMIT = ["--rate", "1", "--period", "1s"];
const FULL = "/dev/full";

describe.skipIf(!existsSync(FULL))("on a full disk", () => {
  test.each([
    ["tidegate", 1, [TIDEGATE, "headers", ...LIMIT]],
    ["tidegate-replay", 2, [REPLAY, join(root, "tests/packaging/access.log"), "--limit", "rate=1 period=1s"]],
    ["tidegate", 1, [TIDEGATE, "replay", join(root, "tests/packaging/access.log"), "--limit", "rate=1 period=1s"]],
    ["tidegate-serve", 1, [SERVE, "--help"]],
  ])("%s exits with %i, and one line with the reason: %j", async (name, code, args) => {
    const full = openSync(FULL, "w");
    const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", full, "pipe"] });
    const exited = new Promise((resolve) => child.once("close", resolve));
    closeSync(full);
    expect(await text(child.stderr as NodeJS.ReadableStream)).toMatch(
      new RegExp(`^${name}: the output cannot be written: ENOSPC: [^\n]*\n$`),
    );
    expect(await exited).toBe(code);
  });
});

test("a service whose log has no reader any more decides as before", async () => {
  await using service = await serving(undefined, ["--log-requests"]);
  const { child } = service.running;
  child.stdout?.destroy();
  for (let i = 0; i < 3; i++) {
    expect(await service.post("/v1/decide", { name: "api", key: "192.0.2.1" })).toMatchObject({ status: 200 });
  }
  expect(await service.end()).toBe(0);
});

test("a line of the log has no character that a terminal obeys or that turns text, whatever path a client sends", async () => {
  await using service = await serving(undefined, ["--log-requests"]);
  const sent = "\u009b31m\u007f\u061c\u200e\u202e\u2028\u2066\u{e0041}é漢";
  await service.request(`/${encodeURIComponent(sent)}`);
  const { path } = await service.logged("request");
  expect(path).toBe(`/${sent}`);
  const written = service.running.output();
  expect(written).toContain("\\u009b31m\\u007f\\u061c");
  expect(written).toContain("\\udb40\\udc41é漢");
  expect(written.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
});
