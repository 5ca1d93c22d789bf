import { existsSync, readFileSync } from "node:fs";
import { Module } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { Script } from "node:vm";
import { ModuleKind, ScriptTarget, transpileModule } from "typescript";
import { describe, expect, test } from "vitest";
import { lint, typeProblems } from "./checkers.ts";
import { reached } from "./graph.ts";
import { type Conditions, forTests, install, npmInstall, output, root } from "./installed.ts";

const targetsOf = (conditions: Conditions): readonly string[] =>
  typeof conditions === "string" ? [conditions] : Object.values(conditions).flatMap(targetsOf);

const user = forTests(install());
const manifest = user.manifest();

/** Files that package.json does not name: parts that entries share, and what the hosts load. */
const BESIDES = [
  /^(LICENSE|README\.md|THIRD-PARTY-LICENSES|package\.json)$/,
  /^dist\/engine\/generated\/((small|policy_bg)\.wasm|(small|algebra)-pure\.js)$/,
  /^dist\/(policy\.schema\.json|postgres\.sql|stores\/redis\/tidegate\.lua)$/,
  /^dist\/[\w/-]+\.(js|cjs|d\.c?ts)$/,
  /^dist\/bundled\/[@\w/.-]+\.c?js$/,
];

describe("the tarball", () => {
  test("holds what package.json names, and besides only shared parts, the wasm, the licence and the readme", () => {
    const paths = user.packed.files.map((file) => file.path);
    const named = [...Object.values(manifest.exports), ...Object.values(manifest.imports)]
      .flatMap(targetsOf)
      .map((path) => path.replace("./", ""));
    expect(named.filter((path) => !paths.includes(path))).toEqual([]);
    expect(paths.filter((path) => !BESIDES.some((pattern) => pattern.test(path)))).toEqual([]);
    expect(paths).toEqual(expect.arrayContaining(["LICENSE", "README.md", "dist/engine/generated/small.wasm"]));
  });

  test("holds nothing that no entry leads to", () => {
    const paths = user.packed.files.map((file) => file.path);
    const programs = Object.values((manifest["bin"] ?? {}) as Record<string, string>);
    const named = [...Object.values(manifest.exports), ...Object.values(manifest.imports), ...programs]
      .flatMap(targetsOf)
      .map((path) => path.replace("./", ""));
    const led = reached(join(user.folder, "node_modules/tidegate"), named, new Set(paths));
    expect(paths.filter((path) => !led.has(path))).toEqual(["LICENSE", "README.md", "THIRD-PARTY-LICENSES"]);
  });

  test("names no folder of the machine that built it, nor do the modules in it", () => {
    const folders = [root, homedir()].map((folder) => folder.replace(/\/?$/, "/")).filter((folder) => folder !== "/");
    const named = [user, user.replay, user.serve, user.console].flatMap(({ tarball, packed: { name } }) => {
      const text = output("tar", ["-xzOf", tarball], { maxBuffer: 2 ** 28 });
      const modules =
        text.match(/[A-Za-z0-9+/]{1000,}/g)?.map((base64) => Buffer.from(base64, "base64").toString()) ?? [];
      return folders
        .filter((folder) => [text, ...modules].some((part) => part.includes(folder)))
        .map((folder) => [name, folder]);
    });
    expect(named).toEqual([]);
  });

  test("has the licence of the repository, and its readme, whose links lead to the repository", () => {
    const packed = (name: string) => readFileSync(join(user.folder, "node_modules/tidegate", name), "utf8");
    const ours = (name: string) => readFileSync(join(root, name), "utf8");
    expect(packed("LICENSE")).toBe(ours("LICENSE"));
    const readme = packed("README.md");
    expect(readme.match(/\]\((?!https:|#)| (src|srcset)="(?!https:)/g)).toBeNull();
    const ofRepository = /(\]\(|src(?:set)?=")https:\/\/github\.com\/tidegate\/tidegate\/(?:blob|raw)\/main\//g;
    expect(readme.replace(ofRepository, "$1")).toBe(ours("README.md"));
  });

  test("installs beside any version of a framework: its entry may be one that the project does not use", () => {
    const older = {
      react: "17.0.2",
      fastify: "4.29.1",
      hono: "3.12.12",
      "@nestjs/common": "9.4.3",
      express: "6.0.0-beta.1",
    };
    const folder = "older";
    for (const [name, version] of Object.entries(older))
      user.write(`${folder}/${name}/package.json`, JSON.stringify({ name, version }));
    const dependencies = Object.fromEntries(Object.keys(older).map((name) => [name, `file:./${name}`]));
    user.write(`${folder}/package.json`, JSON.stringify({ name: "older", private: true, dependencies }));
    npmInstall(join(user.folder, folder), [user.tarball]);
    expect(existsSync(join(user.folder, folder, "node_modules/tidegate/package.json"))).toBe(true);
  });

  test("runs nothing when it is installed, and brings no dependency along", () => {
    expect(manifest["scripts"]).toBeUndefined();
    for (const field of ["dependencies", "bundledDependencies", "bundleDependencies", "gypfile", "binary"]) {
      expect(manifest[field], field).toBeUndefined();
    }
    const lock = JSON.parse(readFileSync(join(user.folder, "package-lock.json"), "utf8")) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };
    expect(Object.keys(lock.packages)).toEqual(["", "node_modules/tidegate"]);
    expect(lock.packages["node_modules/tidegate"]?.hasInstallScript).toBeUndefined();
  });

  test("has ES modules that tools can turn into CommonJS, as tsup does: none declares what its wrapper has", () => {
    const modules = user.packed.files.map((file) => file.path).filter((path) => path.endsWith(".js"));
    const compilerOptions = { module: ModuleKind.CommonJS, target: ScriptTarget.ES2022 };
    const refused = modules.filter((path) => {
      const text = readFileSync(join(user.folder, "node_modules/tidegate", path), "utf8");
      const { outputText } = transpileModule(text, { compilerOptions });
      try {
        void new Script(Module.wrap(outputText.replace(/^#!.*/, "").replaceAll("import.meta.url", "__filename")));
        return false;
      } catch {
        return true;
      }
    });
    expect(modules.length).toBeGreaterThan(50);
    expect(refused).toEqual([]);
  });

  test("offers every host an engine, the most special condition first", () => {
    const conditions = [
      "workerd",
      "react-native",
      "edge-light",
      "fastly",
      "node",
      "deno",
      "convex",
      "browser",
      "default",
    ];
    expect(Object.keys(manifest.imports["#engine-host"] ?? {})).toEqual(conditions);
  });

  test("publint finds nothing", async () => {
    expect(await lint(user.tarball)).toEqual([]);
  });

  test("arethetypeswrong finds nothing in any of its four resolutions", () => {
    const others = ["postgres.sql", "redis.lua"];
    expect(typeProblems(user.tarball, "--exclude-entrypoints", ...others)).toEqual([]);
  });
});
