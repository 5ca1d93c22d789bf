import { describe, expect, test } from "vitest";
import { replayWith } from "../../src/cli/commands/replay.ts";
import type { Terminal } from "../../src/cli/command.ts";
import type { AddonSource } from "../../src/engine/addon.ts";
import { VERSION } from "../../src/engine/generated/bounds.ts";
import { tidegate } from "./terminal.ts";

const linux = { platform: "linux", arch: "x64", musl: false };
const report = { read: { requests: 1000 }, denied: 2 };

/** An addon that hands back what it was asked, and this report. */
function asked(): { source: () => AddonSource; options: Record<string, unknown>[] } {
  const options: Record<string, unknown>[] = [];
  const replay = (text: string, progress: (step: number[]) => void): Promise<string> => {
    options.push(JSON.parse(text) as Record<string, unknown>);
    for (const step of [
      [50, 200, 1234, 0],
      [3e6, Number.NaN, 7, 0],
      [0, Number.NaN, 9, 1],
    ]) {
      progress(step);
    }
    return Promise.resolve(JSON.stringify({ report, text: "told\n", svg: null, html: null }));
  };
  const require = () => ({ version: () => VERSION, decide: () => 0, open: () => 0, replay });
  return { source: () => ({ ...linux, require }), options };
}

const terminal = (out: string[], shown: string[] = []): Terminal => ({
  out: (line) => void out.push(line),
  err: () => {},
  read: () => "{}",
  now: () => 0,
  status: (line) => void shown.push(line),
});

describe("tidegate replay", () => {
  test.each([
    [[], "replay needs a log, or - for the standard input"],
    [["a.log", "--max-keys", "0"], "--max-keys must be a whole number from 1 to 4294967295; got 0"],
    [["a.log", "--format", "xml"], '--format must be common, json or csv; got "xml"'],
    [["a.log", "--key", "none", "--key", "ip"], "--key none stands alone"],
    [["a.log", "--policy", "p.json"], "cannot read p.json: no such file"],
  ])("%j is a mistake that is told", async (argv, sentence) => {
    expect(await tidegate(["replay", ...argv])).toEqual({ code: 2, out: "", err: `tidegate: ${sentence}` });
  });

  test("hands the engine what was asked, and shows how far it is", async () => {
    const { source, options } = asked();
    const [out, shown] = [[] as string[], [] as string[]];
    const values = { key: ["org", "user"], limit: ["rate=1 period=1s"], suggest: true, policy: "p.json", svg: "x" };
    const run = replayWith(source).run({ values, positionals: ["a.log", "-"] }, terminal(out, shown));
    expect(await run).toBe(0);
    expect(options).toEqual([
      {
        files: ["a.log", "-"],
        key: ["org", "user"],
        limits: ["rate=1 period=1s"],
        policy: "{}",
        suggest: "0.1%",
        chart: true,
      },
    ]);
    expect(out).toEqual(["told"]);
    expect(shown).toEqual([
      `[########${".".repeat(22)}] 25 %  1,234 requests`,
      "7 requests, 3 MB",
      "9 requests read; looking for the smallest capacity …",
      "",
    ]);
  });

  test.each([
    ["0.2%", 0],
    ["0.002", 0],
    ["0.1%", 1],
  ])("a budget of %s for two denials of a thousand ends with %i", async (budget, code) => {
    const { source } = asked();
    const run = replayWith(source).run({ values: { budget, json: true }, positionals: ["-"] }, terminal([]));
    expect(await run).toBe(code);
  });

  test("without an addon it says which one is missing, why, and where there are some", async () => {
    const require = (id: string): never => {
      throw new Error(`Cannot find module '${id}'\nRequire stack:`);
    };
    const command = replayWith(() => ({ ...linux, arch: "riscv64", require }));
    await expect(async () => command.run({ values: {}, positionals: ["-"] }, terminal([]))).rejects.toThrow(
      /^replay runs in the native addon, and @tidegate\/linux-riscv64-gnu is not here: Cannot find module '@tidegate\/linux-riscv64-gnu'\. There are addons for Linux \(x64, arm64; glibc, musl\), macOS .* and Windows/,
    );
  });
});
