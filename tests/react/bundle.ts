// Bundles for a page, with either version of React.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { fences, root } from "../readme/blocks.ts";

/** Installed versions of React, and their package names. */
export const VERSIONS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ["19", {}],
  ["18", { react: "react18", "react-dom": "react-dom18" }],
];

const folder = join(root, "node_modules/.cache/tidegate/react");
const page = readFileSync(join(root, "npm/site/start/react.md"), "utf8");
const block = fences(page).find(({ language }) => language === "tsx")?.code ?? "";

/** A module of this folder as one script. */
export async function bundle(
  file: string,
  alias: Readonly<Record<string, string>>,
  format: "esm" | "iife",
): Promise<string> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "block.tsx"), block);
  const { outputFiles } = await build({
    entryPoints: [join(root, "tests/react", file)],
    alias: { ...alias, "readme-block": join(folder, "block.tsx") },
    bundle: true,
    write: false,
    format,
    platform: "browser",
    jsx: "automatic",
    // The environment of the tests says that the host is Node.js.
    tsconfigRaw: {},
    // The tests check React's warnings.
    define: { "process.env.NODE_ENV": '"development"' },
    logLevel: "silent",
  });
  return outputFiles[0]?.text ?? "";
}

/** The same module, run here, as on a rendering server. */
export async function imported<T>(file: string, version: string, alias: Readonly<Record<string, string>>): Promise<T> {
  const path = join(folder, `${version}-${file}.mjs`);
  writeFileSync(path, await bundle(file, alias, "esm"));
  return (await import(/* @vite-ignore */ pathToFileURL(path).href)) as T;
}
