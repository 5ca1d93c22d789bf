import { describe, expect, test } from "vitest";
import { lint, moduleTypeProblems } from "./checkers.ts";
import { forTests, install, output } from "./installed.ts";

const user = forTests(install());
user.add(user.console.tarball);
const manifest = user.manifest("tidegate-console");

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
    expect(await lint(user.console.tarball)).toEqual([]);
    expect(moduleTypeProblems(user.console.tarball)).toEqual([]);
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
