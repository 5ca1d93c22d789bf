// Bun, a package of the workspace: a runtime that the package is tested in, and what installs the packages of other folders.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const { platform, arch } = process;
const system = platform === "win32" ? "windows" : platform;
const machine = arch === "arm64" ? "aarch64" : arch;
const program = `bin/bun${platform === "win32" ? ".exe" : ""}`;

export const BUN = fileURLToPath(
  new URL(`../../node_modules/@oven/bun-${system}-${machine}/${program}`, import.meta.url),
);

/**
 * The program that installs a folder's packages, and its arguments. It follows package-lock.json, where there is one, and
 * writes none. npm, which takes several times as long, does so where the workspace has no Bun.
 *
 * @returns {[string, string[]]}
 */
export const installer = () =>
  existsSync(BUN)
    ? [BUN, ["install", "--no-save", "--ignore-scripts", "--linker", "hoisted"]]
    : ["npm", ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]];
