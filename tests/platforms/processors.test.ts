/**
 * Other processors under qemu, with glibc. Not part of the full run: arm64 where `npm run build:platforms -- linux-arm64-gnu` has built
 * the addon, the others where `node npm/scripts/foreign.mjs linux-arm-gnu` or `linux-s390x-gnu` has installed Node.js.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { replay, replayShared, type Result } from "../hosts/runtimes.ts";
import { addonOf, foreign, isInstalled } from "./foreign.ts";

const [ARM64, ARM, BIG_ENDIAN] = ["linux-arm64-gnu", "linux-arm-gnu", "linux-s390x-gnu"] as const;

test("the package of arm64 is named as its Node.js requests it", async () => {
  const { packageOf } = await import("../../npm/tidegate/src/engine/addon.ts");
  const source = { platform: "linux", arch: "arm64", musl: false, require: () => undefined };
  expect(packageOf(source)).toBe(`@tidegate/${ARM64}`);
});

// On arm64 itself the other tests run it.
if (process.arch !== "arm64" && existsSync(addonOf(ARM64))) {
  const node = foreign(ARM64);
  const memory = (await node.run("print-memory.js")) as Result[];
  const shared = await node.run("shared.js");
  const inFile = (await node.run("file.js", node.folder)) as Result[];

  describe(ARM64, () => {
    describe("in memory, on the wasm", () => replay(memory));
    replayShared(shared);
    describe("file(), on the addon", () => replay(inFile));

    test("a folder of x64 goes on here, and the reverse", async () => {
      node.write(
        "take.js",
        `import { defineLimits } from "tidegate";
        import { file } from "tidegate/file";
        const config = { kind: "token bucket", rate: 1 / 3, period: 2 ** 40, capacity: 10 };
        const limits = defineLimits({ api: config }, { store: file(process.argv[2]), now: () => Number(process.argv[3]) });
        const { value, ts } = limits.limit("api", { key: "ann é \\ud83d\\ude00" });
        console.log(JSON.stringify([process.arch, value, ts]));`,
      );
      const took = async (name: string, by: readonly ("run" | "runHere")[]) => {
        const rows = [];
        for (const [i, on] of by.entries()) {
          rows.push(await node[on]("take.js", join(node.folder, name), String(1_800_000_000_000 + 7 * i)));
        }
        return rows as [string, number, number][];
      };
      const here = await took("here", ["runHere", "runHere", "runHere"]);
      const both = await took("both", ["runHere", "run", "runHere"]);
      const there = await took("there", ["run", "runHere"]);
      expect([...both, ...there].map(([arch]) => arch)).toEqual(["x64", "arm64", "x64", "arm64", "x64"]);
      const numbers = (rows: typeof here) => rows.map(([, ...rest]) => rest);
      expect(numbers(both)).toEqual(numbers(here));
      expect(numbers(there)).toEqual(numbers(here).slice(0, 2));
    });
  });
}

if (isInstalled(ARM)) {
  const memory = (await foreign(ARM).run("print-memory.js")) as Result[];
  describe(`${ARM}, of 32 bits, in memory`, () => replay(memory));
}

if (isInstalled(BIG_ENDIAN)) {
  const node = foreign(BIG_ENDIAN);
  describe(BIG_ENDIAN, () => {
    test.each(["tidegate", "tidegate/pure"])("%s decides nothing, and the error has the reason", async (entry) => {
      node.write(
        "refused.js",
        `const decide = async () => {
          const { defineLimits } = await import("${entry}");
          return defineLimits({ api: { kind: "token bucket", rate: 1, period: 1000 } }).limit("api", { key: "ann" });
        };
        const got = await decide().catch(({ message }) => message);
        console.log(JSON.stringify([process.arch, got]));`,
      );
      const message = "Tidegate needs a little-endian processor, such as x64 or arm64; this one is big-endian";
      expect(await node.run("refused.js")).toEqual(["s390x", message]);
    });
  });
}
