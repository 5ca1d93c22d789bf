import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { install, type Installed, type Manifest, output, root } from "./installed.ts";

let user: Installed;
let manifest: Manifest;

beforeAll(() => {
  user = install();
  const options = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  output("npm", ["install", ...options, user.console.tarball], { cwd: user.folder });
  const text = readFileSync(join(user.folder, "node_modules/tidegate-console/package.json"), "utf8");
  manifest = JSON.parse(text) as Manifest;
});
afterAll(() => user.remove());

describe("the tarball of tidegate-console", () => {
  test("contains its modules with the page, their types, the list of bundled packages, the licences and the readme", () => {
    const paths = user.console.packed.files.map(({ path }) => path);
    const besides = ["LICENSE", "README.md", "THIRD-PARTY-LICENSES", "dist/bundled.json", "package.json"];
    expect(paths.filter((path) => !/\.(js|d\.ts)$/.test(path)).sort()).toEqual(besides);
    expect(paths).toEqual(expect.arrayContaining(["dist/index.js", "dist/index.d.ts", "dist/generated/page.js"]));
  });

  test("runs nothing when it is installed, and uses the tidegate of the app", () => {
    for (const field of ["scripts", "dependencies", "optionalDependencies", "os", "cpu"])
      expect(manifest[field], field).toBeUndefined();
    expect(manifest["peerDependencies"]).toEqual({ tidegate: expect.any(String) });
  });

  test("publint finds nothing, and the types are right", async () => {
    const data = readFileSync(user.console.tarball);
    const tarball = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
    const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
    const attw = join(root, "node_modules/@arethetypeswrong/cli/dist/index.js");
    const args = [attw, user.console.tarball, "--profile", "esm-only", "--format", "json"];
    const { stdout } = spawnSync(process.execPath, args, { encoding: "utf8", maxBuffer: 2 ** 26 });
    const { problems } = JSON.parse(stdout) as { problems: Record<string, { resolutionKind?: string }[]> };
    const passedOver = ["node10", "node16-cjs"];
    const all = Object.values(problems).flat();
    expect(all.filter(({ resolutionKind }) => !passedOver.includes(resolutionKind ?? ""))).toEqual([]);
  });

  test("names the licence of what is in the page", () => {
    const notices = output("tar", ["-xzOf", user.console.tarball, "package/THIRD-PARTY-LICENSES"]);
    const bundled = JSON.parse(output("tar", ["-xzOf", user.console.tarball, "package/dist/bundled.json"])) as string[];
    expect(bundled).toEqual(["react", "react-dom", "scheduler", "uplot"]);
    for (const name of bundled) expect(notices).toMatch(new RegExp(`^${name} [\\d.]+, MIT, `, "m"));
  });

  test("responds with the page, from the tarballs of both", () => {
    const program = user.write(
      "console.mjs",
      `import { defineLimits } from "tidegate";
import { createConsole } from "tidegate-console";
const { limits, fetch } = createConsole(defineLimits({ api: { kind: "fixed window", rate: 1, period: "1s" } }), { authorize: () => true });
limits.limit("api");
const page = await fetch(new Request("http://localhost/"));
console.log(page.status, (await page.text()).slice(0, 15));`,
    );
    expect(output(process.execPath, [program], { cwd: user.folder })).toBe("200 <!doctype html>\n");
  });
});
