/** The contract of a package that is installed beside tidegate: `tidegate-replay`, `tidegate-serve`, `tidegate-console`. */
import { expect, test } from "vitest";
import { lint, moduleTypeProblems } from "./checkers.ts";
import { type Installed, type Manifest, output } from "./installed.ts";

interface Expected {
  /** Files that are neither programs nor types, but those that every package has. */
  readonly others: readonly string[];
  /** Some of its programs and types. */
  readonly contains: readonly string[];
  /** What is linked into it, for some crates or packages. */
  readonly linked: readonly string[];
}

export function packageSuite(
  { tarball, packed }: Installed["replay"],
  manifest: Manifest,
  { others, contains, linked }: Expected,
): void {
  test("contains only its programs, their types, the licences and the readme, and what they read", () => {
    const paths = packed.files.map(({ path }) => path);
    const every = ["LICENSE", "README.md", "THIRD-PARTY-LICENSES", "package.json"];
    expect(paths.filter((path) => !/^dist\/.*\.(js|d\.ts)$/.test(path)).sort()).toEqual([...others, ...every].sort());
    expect(paths).toEqual(expect.arrayContaining([...contains]));
  });

  test("runs nothing when it is installed, and is the same on every system", () => {
    for (const field of ["scripts", "optionalDependencies", "os", "cpu", "libc"])
      expect(manifest[field], field).toBeUndefined();
  });

  test("publint finds nothing, and the types are right", async () => {
    expect(await lint(tarball)).toEqual([]);
    expect(moduleTypeProblems(tarball)).toEqual([]);
  });

  test("names the licence of what is linked or bundled", () => {
    const read = (path: string) => output("tar", ["-xzOf", tarball, `package/${path}`]);
    const bundled = others.includes("dist/bundled.json") ? (JSON.parse(read("dist/bundled.json")) as string[]) : linked;
    expect(bundled).toEqual(expect.arrayContaining([...linked]));
    const notices = read("THIRD-PARTY-LICENSES");
    for (const name of bundled) expect(notices).toMatch(new RegExp(`^${name} [\\d.]+, \\S`, "m"));
  });
}
