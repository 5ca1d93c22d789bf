import { describe, expect, test } from "vitest";
import type { Terminal } from "../../src/cli/command.ts";
import { packageCommand } from "../../src/cli/commands/packages.ts";
import { tidegate } from "./terminal.ts";

const ABOUT = { name: "replay", package: "tidegate-replay", summary: "", takes: "<log...>", does: "Replays." };
const terminal: Terminal = { out: () => {}, err: () => {}, read: () => "", exists: () => false, now: () => 0 };

describe("a command that is a package of its own", () => {
  test("has a short help that names the package", async () => {
    const { code, out, err } = await tidegate(["help", "replay"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^ {2}npm install tidegate-replay$/m);
  });

  test("forwards every argument, and returns the exit code", async () => {
    const calls: unknown[] = [];
    const run = (...call: unknown[]) => {
      calls.push(call);
      return Promise.resolve(1);
    };
    const words = ["a.log", "--limit", "rate=1 period=1s", "--help"];
    const command = packageCommand(ABOUT, () => Promise.resolve({ run }));
    expect(await command.run({ values: {}, positionals: words }, terminal)).toBe(1);
    expect(calls).toEqual([[words, terminal]]);
  });

  test("runs the package of this repository, whose mistakes exit with 2", async () => {
    expect(await tidegate(["replay"])).toEqual({
      code: 2,
      out: "",
      err: "tidegate: replay needs a log, or - for standard input",
    });
    const unknown = await tidegate(["replay", "--limt", "1"]);
    expect([unknown.code, unknown.err]).toEqual([2, "tidegate: Unknown option '--limt'; see tidegate-replay --help"]);
  });

  test("serve runs the package tidegate-serve", async () => {
    const { code, out, err } = await tidegate(["serve"]);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toBe("tidegate: serve needs one file of policies; see tidegate-serve --help");
    expect((await tidegate(["help", "serve"])).out).toMatch(/^ {2}npx tidegate-serve --help {4}every option$/m);
  });

  test("throws errors that the user did not cause", async () => {
    const run = () => Promise.reject(new TypeError("a defect"));
    const command = packageCommand(ABOUT, () => Promise.resolve({ run }));
    await expect(command.run({ values: {}, positionals: [] }, terminal)).rejects.toThrow(TypeError);
  });
});
