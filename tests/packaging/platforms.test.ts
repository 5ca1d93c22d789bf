import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, parse } from "node:path";
import { build, type BuildOptions } from "esbuild";
import { describe, expect, test } from "vitest";
import { here, packageOf } from "../../npm/tidegate/src/engine/addon.ts";
import { forTests, install, type Manifest, output, root } from "./installed.ts";

const user = forTests(install({ addons: true }));
/** This machine's package, and the file of its addon, as unpacked from the tarball. */
const name = packageOf(here());
const own = user.addons.find((one) => one.name === name);
if (own === undefined) throw new Error(`${name} is not built: npm run build`);
user.add(user.tarball, own.tarball);
const addon = createRequire(join(user.folder, "package.json")).resolve(name);
const whole = readFileSync(addon);
user.write(
  "shared.mjs",
  `import { shared } from "tidegate/shared";
  process.on("warning", ({ code, message, detail }) => console.log(code, message, detail));
  shared();
  console.log(shared().name);`,
);
user.write("wasm.mjs", 'import { defineLimits } from "tidegate"; defineLimits({}); console.log("answers");');
user.write(
  "file.mjs",
  `import { file } from "tidegate/file";
  try { file("./limits"); } catch (error) { console.log(error.code, error.message); }`,
);

const runIn = (cwd: string, ...args: string[]) => {
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd, encoding: "utf8" });
  return { stdout, stderr, status };
};
const run = (...args: string[]) => runIn(user.folder, ...args);

/** Replaces the addon's file; does not overwrite it, since a process may have loaded it. */
const put = (bytes: Uint8Array | undefined) => {
  rmSync(addon);
  if (bytes !== undefined) writeFileSync(addon, bytes);
};

describe("the package for this platform", () => {
  test("is installed beside the main one, at the version that it requires, and is used without a warning", () => {
    const read = (of: string) =>
      JSON.parse(readFileSync(join(user.folder, "node_modules", of, "package.json"), "utf8")) as {
        version: string;
        optionalDependencies: Record<string, string>;
      };
    expect(read("tidegate").optionalDependencies[name]).toBe(read(name).version);
    expect(run("shared.mjs")).toEqual({ stdout: "shared\n", stderr: "", status: 0 });
  });

  test("contains only the addon and the licences of linked code; it runs nothing when it is installed", () => {
    for (const one of user.addons) {
      const platform = one.name.replace("@tidegate/", "");
      const files = one.packed.files.map(({ path }) => path).sort();
      expect(files).toEqual(
        ["LICENSE", "README.md", "THIRD-PARTY-LICENSES", "package.json", `tidegate.${platform}.node`].sort(),
      );
    }
  });

  test("where Node.js loads no addons, the warning and the error name its option, not the installed package", () => {
    const remedy = "start Node.js with --allow-addons, and without --no-addons";
    for (const file of ["shared.mjs", "file.mjs"]) {
      const { stdout } = run("--no-addons", file);
      expect(stdout).toContain("tidegate's addon did not load");
      expect(stdout).toContain(remedy);
      expect(stdout).not.toContain("install");
    }
  });

  test("under the permission model it needs --allow-addons, and its folder no --allow-fs-write", () => {
    const all = process.allowedNodeEnvironmentFlags;
    const flags = [all.has("--permission") ? "--permission" : "--experimental-permission", "--no-warnings"];
    const read = `--allow-fs-read=${realpathSync(user.folder)}`;
    const { stdout } = run(...flags, read, "file.mjs");
    expect(stdout).toContain("start Node.js with --allow-addons");
    expect(run(...flags, read, "--allow-addons", "file.mjs")).toEqual({ stdout: "", stderr: "", status: 0 });
  });

  const bundle = async (out: string, options: BuildOptions) => {
    const outfile = join(user.folder, out);
    const entryPoints = [join(user.folder, "shared.mjs")];
    await build({ entryPoints, bundle: true, platform: "node", minify: true, outfile, logLevel: "error", ...options });
    return outfile;
  };

  test("is found from a CommonJS bundle in whatever folder it is started", async () => {
    const out = await bundle("bundle.cjs", { format: "cjs" });
    expect(runIn(parse(out).root, out)).toEqual({ stdout: "shared\n", stderr: "", status: 0 });
  });

  test("is found from an ES module that has the CommonJS files inside, as ncc makes it", async () => {
    const js = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';
    const out = await bundle("bundle.mjs", { format: "esm", conditions: ["node"], banner: { js } });
    expect(run(out)).toEqual({ stdout: "shared\n", stderr: "", status: 0 });
  });

  test("is found from an ES module in which webpack or Rspack wrote the address of the file that they read", async () => {
    const define = { "import.meta.url": '"file:///built/elsewhere/addon.js"' };
    const out = await bundle("packed.mjs", { format: "esm", define });
    expect(runIn(parse(out).root, out)).toEqual({ stdout: "shared\n", stderr: "", status: 0 });
  });

  const every: { what: string; cause: RegExp; bytes: () => Uint8Array | undefined }[] = [
    { what: "missing", cause: /Cannot find module/, bytes: () => undefined },
    { what: "empty", cause: /\.node: /, bytes: () => new Uint8Array(0) },
    { what: "no library at all", cause: /\.node: /, bytes: () => Buffer.from("<!doctype html>".repeat(100)) },
    // A library's header has the machine at byte 18: 0xb7 is arm64, 0x3e is x64.
    {
      what: "of another architecture",
      cause: /\.node: /,
      bytes: () => Buffer.from(whole).fill(whole[18] === 0xb7 ? 0x3e : 0xb7, 18, 19),
    },
    { what: "for a newer C library", cause: /GLIBC_9/, bytes: () => Buffer.from(glibc9(whole), "latin1") },
  ];
  // Other systems have other messages for a broken library, and only glibc has versions.
  const words = here().musl ? 4 : 5;
  const broken = every.slice(0, process.platform === "linux" ? words : 1);

  test.each(broken)("$what: one warning has the reason, and everything else works", ({ cause, bytes }) => {
    put(bytes());
    try {
      const { stdout, stderr, status } = run("shared.mjs");
      expect(status).toBe(0);
      const reported =
        "memory\nTIDEGATE_ADDON tidegate's addon did not load, so shared() is this thread's own memory: ";
      expect(stdout.slice(0, reported.length)).toBe(reported);
      expect(stdout.match(/TIDEGATE_ADDON/g)).toHaveLength(1);
      expect(stdout.slice(reported.length)).toMatch(cause);
      expect(stdout).toContain(`To load it, install the package ${name}; or `);
      expect(stderr).toContain("tidegate's addon did not load");
      expect(run("wasm.mjs")).toEqual({ stdout: "answers\n", stderr: "", status: 0 });
      const file = run("file.mjs");
      expect(file.stdout).toMatch(/^TIDEGATE_STORE .*tidegate's addon did not load: /);
      expect(file.stdout).toMatch(cause);
    } finally {
      if (existsSync(addon)) rmSync(addon);
      writeFileSync(addon, whole);
    }
  });
});

/** The same library, requiring a C library that does not exist. */
function glibc9(library: Buffer): string {
  const text = library.toString("latin1");
  const newest = [...text.matchAll(/\0GLIBC_2\.\d\d(?=\0)/g)]
    .map(([found]) => found.slice(1))
    .sort()
    .at(-1) as string;
  return text.replaceAll(`\0${newest}\0`, `\0${newest.replace("GLIBC_2", "GLIBC_9")}\0`);
}

test("the release's check of an addon, npm/scripts/loads.mjs, passes on this machine's", () => {
  const platform = name.replace("@tidegate/", "");
  expect(output(process.execPath, ["npm/scripts/loads.mjs", platform], { cwd: root })).toMatch(
    new RegExp(`^${platform} .* decides on ${process.version}`),
  );
});

test("every platform has a package of the same version that npm installs only there", () => {
  const main = user.manifest();
  const optional = main["optionalDependencies"] as Record<string, string>;
  const folders = readdirSync(join(root, "npm")).filter((folder) => /^(darwin|linux|win32)-/.test(folder));
  expect(Object.keys(optional).sort()).toEqual(folders.map((folder) => `@tidegate/${folder}`).sort());
  expect(new Set(Object.values(optional))).toEqual(new Set([main["version"]]));
  for (const platform of folders) {
    const manifest = JSON.parse(readFileSync(join(root, "npm", platform, "package.json"), "utf8")) as Manifest;
    const [os, cpu, abi] = platform.split("-");
    const libc = abi === "gnu" ? ["glibc"] : abi === "musl" ? ["musl"] : undefined;
    const file = `tidegate.${platform}.node`;
    expect(manifest).toMatchObject({ name: `@tidegate/${platform}`, os: [os], cpu: [cpu], main: file, files: [file] });
    expect(manifest["libc"]).toEqual(libc);
    expect(manifest["scripts"]).toBeUndefined();
  }
});
