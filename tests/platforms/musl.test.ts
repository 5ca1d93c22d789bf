/** Linux with musl 1.2.5, on a real Node.js that is linked with it. x64 is part of the full run; arm64 runs under qemu where it is built. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { replay, replayShared, type Result } from "../hosts/runtimes.ts";
import { addonOf, foreign } from "./foreign.ts";

const PLATFORMS = ["linux-x64-musl", "linux-arm64-musl"].filter(
  (platform) => platform === "linux-x64-musl" || existsSync(addonOf(platform)),
);

for (const platform of PLATFORMS) {
  const node = foreign(platform);
  const emulated = platform !== "linux-x64-musl";
  const memory = (await node.run("print-memory.js")) as Result[];
  const shared = await node.run("shared.js");
  // qemu lacks the robust mutexes that LMDB locks with.
  const inFile = emulated ? undefined : ((await node.run("file.js", node.folder)) as Result[]);

  describe(platform, () => {
    test("is Node.js with musl", async () => {
      node.write(
        "system.js",
        "const { header } = process.report.getReport(); console.log(JSON.stringify([header.platform, header.arch, typeof header.glibcVersionRuntime]));",
      );
      expect(await node.run("system.js")).toEqual(["linux", emulated ? "arm64" : "x64", "undefined"]);
    });

    describe("in memory, on the wasm", () => replay(memory));
    replayShared(shared);

    if (inFile === undefined) return;
    describe("file(), on the addon", () => replay(inFile));

    test("three processes on one folder take exactly its tokens", async () => {
      const place = join(node.folder, "together");
      const granted = await Promise.all([1, 2, 3].map(() => node.run("file-taker.js", place, "500")));
      expect((granted as number[]).reduce((sum, one) => sum + one, 0)).toBe(1000);
    });
  });
}
