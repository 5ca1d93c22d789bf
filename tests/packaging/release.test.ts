import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { remove, temporaryFolder } from "../support/folders.ts";
import { output, root } from "./installed.ts";

interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps: readonly { readonly run?: string }[];
}
interface Workflow {
  readonly jobs: Readonly<Record<string, Job>>;
}

const read = (path: string): string => readFileSync(join(root, path), "utf8");

const platforms = readdirSync(join(root, "npm"))
  .filter((folder) => /^(darwin|linux|win32)-/.test(folder))
  .sort();

interface Crate {
  name: string;
  version: string;
  publish: string[] | null;
  manifest_path: string;
  [field: string]: unknown;
}

const { packages } = JSON.parse(
  output("cargo", ["metadata", "--format-version", "1", "--no-deps", "--locked"], { cwd: root, maxBuffer: 2 ** 26 }),
) as { packages: Crate[] };

describe("the version", () => {
  const version = output("npm", ["run", "--silent", "bump"], { cwd: root }).trim();

  test("is the same in every crate and package, as `npm run bump` reports", () => {
    expect(version).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
    expect(new Set(packages.map((crate) => crate.version))).toEqual(new Set([version]));
    for (const folder of ["tidegate", "tidegate-replay", "tidegate-serve", "tidegate-console", ...platforms]) {
      expect((JSON.parse(read(`npm/${folder}/package.json`)) as Crate).version, folder).toBe(version);
    }
  });

  test("has its heading in CHANGELOG.md, with a date, or still unreleased", () => {
    const headings = read("CHANGELOG.md").match(/^## .*$/gm) ?? [];
    expect(headings[0]).toMatch(/^## \[?\d+\.\d+\.\d+[^ ]*( - (unreleased|\d{4}-\d\d-\d\d))$/);
    expect(headings[0]).toContain(version);
  });

  test("cannot be set to an invalid one", () => {
    for (const wrong of ["1.0", "v1.0.0", "1.0.0+build", "01.0.0"]) {
      const { status, stderr } = spawnSync(process.execPath, ["npm/scripts/bump.mjs", wrong], {
        cwd: root,
        encoding: "utf8",
      });
      expect([status, stderr]).toEqual([
        1,
        `\ntidegate: a version is three numbers, as 0.2.0, and perhaps -rc.1; got ${wrong}\n`,
      ]);
    }
  });
});

// npm is a .cmd file on Windows.
describe.skipIf(process.platform === "win32")("publishing to npm", () => {
  const names = [...platforms.map((platform) => `@tidegate/${platform}`), "tidegate"];
  names.push("tidegate-replay", "tidegate-serve", "tidegate-console");

  /** Runs the script on tarballs of this version, with an npm that writes down its arguments and has `there` already. */
  function publish(version: string, { published = names, there = "" } = {}) {
    const folder = temporaryFolder("publish");
    onTestFinished(() => remove(folder));
    const log = join(folder, "log");
    const npm = `#!/bin/sh
if [ "$1" = view ]; then [ "$2" = "${there}@${version}" ] && echo "${version}"; exit 0; fi
echo "$@" >> "${log}"
`;
    writeFileSync(join(folder, "npm"), npm, { mode: 0o755 });
    const packed = published.map((name) => ({ name, version, filename: `${name.replace(/^@.*\//, "")}.tgz` }));
    writeFileSync(join(folder, "packages.json"), JSON.stringify(packed));
    const env = { ...process.env, PATH: `${folder}${delimiter}${process.env["PATH"]}` };
    const script = join(root, "npm/scripts/publish.mjs");
    const { status, stderr } = spawnSync(process.execPath, [script, folder], { cwd: root, encoding: "utf8", env });
    const lines = existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [];
    return { status, stderr, lines: lines.map((line) => line.replaceAll(`${folder}/`, "")) };
  }
  const lineOf = (name: string, tag: string): string =>
    `publish ${name.replace(/^@.*\//, "")}.tgz --access public --ignore-scripts --tag ${tag} --provenance`;

  test("each package is published with provenance and without its scripts, those of platforms first", () => {
    const { status, lines } = publish("9.9.9");
    expect([status, lines]).toEqual([0, names.map((name) => lineOf(name, "latest"))]);
  });

  test("a version before a release is not what `npm install` selects", () => {
    expect(publish("9.9.9-rc.1").lines).toEqual(names.map((name) => lineOf(name, "next")));
  });

  test("continues where it stopped, and publishes nothing if a package is absent", () => {
    const [there = "", ...others] = names;
    expect(publish("9.9.9", { there }).lines).toEqual(others.map((name) => lineOf(name, "latest")));
    const { status, stderr, lines } = publish("9.9.9", { published: others });
    expect([status, lines]).toEqual([1, []]);
    expect(stderr).toContain(`: ${there}\n`);
  });
});

describe("the crates that are published", () => {
  // `null` is crates.io, and an empty list is `publish = false`.
  const published = packages.filter(({ publish }) => publish === null);

  test("are those that a server in Rust uses", () => {
    const names = published.map(({ name }) => name).sort();
    expect(names).toEqual(["tidegate-core", "tidegate-file", "tidegate-policy", "tidegate-table"]);
  });

  test.each(published)("$name has all metadata that crates.io requires, and the licence", (crate) => {
    for (const field of ["description", "license", "repository", "readme", "rust_version"]) {
      expect(crate[field], field).toEqual(expect.stringMatching(/./));
    }
    // The maximum of crates.io.
    for (const field of ["keywords", "categories"]) {
      expect((crate[field] as string[]).length, field).toBeGreaterThan(0);
      expect((crate[field] as string[]).length, field).toBeLessThanOrEqual(5);
    }
    for (const keyword of crate["keywords"] as string[]) expect(keyword).toMatch(/^[a-z\d][\w+-]{0,19}$/i);
    const folder = crate.manifest_path.replace(/Cargo\.toml$/, "");
    expect(readFileSync(`${folder}LICENSE`, "utf8")).toBe(read("LICENSE"));
  });
});

describe("the workflows", () => {
  const files = readdirSync(join(root, ".github/workflows")).map((file) => `.github/workflows/${file}`);

  test.each(files)("%s is valid YAML for GitHub", (file) => {
    const validator = join(root, "node_modules/@action-validator/cli/cli.mjs");
    const { status, stdout, stderr } = spawnSync(process.execPath, [validator, join(root, file)], { encoding: "utf8" });
    expect([status, stdout + stderr]).toEqual([0, ""]);
  });

  test.each(files)(
    "%s pins every action to a commit, keeps no token, and may only read, unless a job declares more",
    (file) => {
      const text = read(file);
      const uses = text.match(/^.*\buses: .*$/gm) ?? [];
      expect(uses.length).toBeGreaterThan(0);
      expect(uses.filter((line) => !/uses: [\w./-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
      expect(text).toMatch(/^permissions:\n {2}contents: read\n\n/m);
      expect(text).not.toContain("secrets.");
      expect(text.match(/actions\/checkout@/g)?.length).toBe(text.match(/persist-credentials: false/g)?.length);
    },
  );

  test("run the README's commands, and only existing ones", () => {
    const scripts = Object.keys((JSON.parse(read("package.json")) as { scripts: object }).scripts);
    const text = files.map(read).join("\n");
    expect(text.match(/^ +- run: \.ci\/run$/gm)).toHaveLength(2);
    for (const [, name] of text.matchAll(/npm (?:run (?:--silent )?)([\w:]+)/g)) expect(scripts).toContain(name);
    for (const [, file] of text.matchAll(/node \/?(npm\/scripts\/[\w-]+\.mjs)/g))
      expect(read(file as string)).not.toBe("");
  });

  test("a job that may ask for a token of the release runs no code that is installed or compiled there", () => {
    const jobs = files.flatMap((file) => Object.values((parse(read(file)) as Workflow).jobs));
    const trusted = jobs.filter(({ permissions }) => permissions?.["id-token"] !== undefined);
    expect(trusted).toHaveLength(1);
    const [{ steps }] = trusted as [Job];
    expect(steps.flatMap(({ run }) => run ?? [])).toEqual([
      expect.stringMatching(/^rustup toolchain install /),
      "node npm/scripts/publish.mjs packages",
      "cargo publish --workspace --locked --no-verify",
    ]);
    // Node.js' own modules only: an import of another package would fail there, and must not be installed.
    for (const script of ["publish", "run", "linked", "files"]) {
      const imports = [...read(`npm/scripts/${script}.mjs`).matchAll(/^import .* from "([^"]+)"/gm)];
      expect(
        imports.map(([, from = ""]) => from).filter((from) => !/^(node:|\.\/(run|linked|files)\.mjs)/.test(from)),
      ).toEqual([]);
    }
  });

  test("toolchains, images and tools have a version", () => {
    const text = files.map(read).join("\n");
    for (const file of files)
      expect(read(file), file).toMatch(/^env:\n(?: {2}#.*\n)* {2}RUSTUP_TOOLCHAIN: 1\.\d+\.\d+$/m);
    expect([...text.matchAll(/cargo install (.*)$/gm)].map(([, args]) => args)).toEqual(
      files.map(() => expect.stringMatching(/^--locked cargo-deny@\d+\.\d+\.\d+$/)),
    );
    for (const [, image = ""] of text.matchAll(/image: "([^"]+)"/g)) {
      expect(image).toMatch(/^node:\d+\.\d+\.\d+-(bullseye|alpine3\.\d+)$/);
    }
    expect(text).not.toMatch(/-latest\b/);
  });

  test("the release builds the addon of every platform", () => {
    const built = [...read(".github/workflows/release.yml").matchAll(/- \{ platform: ([\w-]+),/g)].map(
      ([, name]) => name,
    );
    expect(built.sort()).toEqual(platforms);
  });
});
