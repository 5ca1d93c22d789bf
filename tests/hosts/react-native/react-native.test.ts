/** Engines of apps: Metro with React Native's preset bundles the packed package; Hermes and QuickJS run it without a polyfill. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { buildSync } from "esbuild";
import { describe } from "vitest";
import { project } from "../project.ts";
import { inRuntime, replay } from "../runtimes.ts";

const exec = promisify(execFile);
const modules = fileURLToPath(new URL("./node_modules", import.meta.url));
const HERMES = { linux: "linux64-bin/hermes", darwin: "osx-bin/hermes", win32: "win64-bin/hermes.exe" };

await inRuntime("react-native", async () => {
  const user = project("react-native/user");
  const run = async (program: string, ...args: string[]): Promise<string> =>
    (await exec(program, args, { cwd: user.folder, maxBuffer: 2 ** 26 })).stdout;

  // Nothing of `react-native` itself runs before the program: its polyfills need native modules, and would hide what is missing.
  user.write(
    "metro.config.js",
    `const { getDefaultConfig, mergeConfig } = require(${JSON.stringify(join(modules, "@react-native/metro-config/dist/index.js"))});
module.exports = mergeConfig(getDefaultConfig(__dirname), {
  watchFolders: [${JSON.stringify(modules)}],
  resolver: { nodeModulesPaths: [${JSON.stringify(modules)}] },
  serializer: { getModulesRunBeforeMainModule: () => [], getPolyfills: () => [] },
});
`,
  );
  const metro = [
    "build",
    "index.js",
    "--out",
    "metro.js",
    "--platform",
    "ios",
    "--dev",
    "false",
    "--config",
    "metro.config.js",
  ];
  await run(process.execPath, join(modules, "metro/src/cli.js"), ...metro);
  const hermes = join(modules, "hermes-engine-cli", HERMES[process.platform as keyof typeof HERMES]);
  const inHermes = JSON.parse(await run(hermes, "-w", "-O", "metro.js")) as { name: string; error?: string }[];
  describe("Hermes, bundled by Metro", () => replay(inHermes));

  buildSync({
    entryPoints: [join(user.folder, "index.js")],
    outfile: join(user.folder, "script.js"),
    bundle: true,
    format: "iife",
    conditions: ["react-native"],
    logLevel: "error",
  });
  const quickjs = pathToFileURL(join(modules, "quickjs-emscripten/dist/index.mjs")).href;
  const inQuickJs = JSON.parse(await run(process.execPath, "quickjs.mjs", quickjs, "script.js")) as typeof inHermes;
  describe("QuickJS", () => replay(inQuickJs));
});
