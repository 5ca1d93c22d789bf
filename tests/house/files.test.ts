/** The digest by which builds, tests and records know that what they were made from has changed. */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { digestOf } from "../../npm/scripts/files.mjs";
import { remove, temporaryFolder } from "../support/folders.ts";

test("a digest differs by the text and the name of each file of each path, and by what else counts", () => {
  const base = temporaryFolder("digest");
  onTestFinished(() => remove(base));
  const [sources, manifest] = [join(base, "src"), join(base, "package.json")];
  const deep = join(sources, "a", "deep.ts");
  mkdirSync(join(sources, "a"), { recursive: true });
  for (const file of [deep, join(sources, "b.ts"), manifest]) writeFileSync(file, "1");
  const digest = (extra = ""): string => digestOf(base, [sources, manifest], extra);
  const digests = [digest(), digest("release")];
  for (const file of [deep, manifest]) {
    writeFileSync(file, "2");
    digests.push(digest());
  }
  renameSync(join(sources, "b.ts"), join(sources, "c.ts"));
  digests.push(digest());
  expect(new Set(digests).size).toBe(digests.length);
  // The order of the paths, a path with nothing, and where the folder is count for nothing.
  expect(digestOf(base, [manifest, join(base, "absent"), sources])).toBe(digest());
  const moved = `${base}-moved`;
  renameSync(base, moved);
  onTestFinished(() => remove(moved));
  expect(digestOf(moved, [join(moved, "src"), join(moved, "package.json")])).toBe(digests.at(-1));
});
