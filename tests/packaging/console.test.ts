import { describe, expect, test } from "vitest";
import { packageSuite } from "./package-suite.ts";
import { forTests, install, output } from "./installed.ts";

const user = forTests(install());
user.add(user.console.tarball);
const manifest = user.manifest("tidegate-console");

describe("the tarball of tidegate-console", () => {
  packageSuite(user.console, manifest, {
    others: ["dist/bundled.json"],
    contains: ["dist/index.js", "dist/index.d.ts", "dist/generated/page.js"],
    linked: ["react", "react-dom", "scheduler", "uplot"],
  });

  test("has React and uPlot in its page, and no other package", () => {
    const bundled = output("tar", ["-xzOf", user.console.tarball, "package/dist/bundled.json"]);
    expect(JSON.parse(bundled)).toEqual(["react", "react-dom", "scheduler", "uplot"]);
  });

  test("uses the tidegate of the app", () => {
    expect(manifest["dependencies"]).toBeUndefined();
    expect(manifest["peerDependencies"]).toEqual({ tidegate: expect.any(String) });
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
