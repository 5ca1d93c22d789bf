import { execFileSync, type ExecFileSyncOptions } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { remove, temporaryFolder } from "../support/folders.ts";

export const root: string = fileURLToPath(new URL("../..", import.meta.url));

interface Packed {
  name: string;
  filename: string;
  version: string;
  size: number;
  unpackedSize: number;
  files: { path: string; size: number }[];
}

/** A program's output; if it fails, the error contains it and stderr. */
export function output(command: string, args: string[], options: ExecFileSyncOptions = {}): string {
  const shell = process.platform === "win32";
  try {
    return execFileSync(command, args, { ...options, shell, encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    // Without the cause, which repeats the text twice.
    throw new Error(`${command} ${args.join(" ")} failed\n${stdout?.slice(0, 4000)}\n${stderr?.slice(0, 4000)}`);
  }
}

export interface Installed {
  /** The tarball as published. */
  readonly tarball: string;
  readonly packed: Packed;
  /** The packages `tidegate-replay`, `tidegate-serve` and `tidegate-console`, packed and not installed. */
  readonly replay: { readonly tarball: string; readonly packed: Packed };
  readonly serve: { readonly tarball: string; readonly packed: Packed };
  readonly console: { readonly tarball: string; readonly packed: Packed };
  /** The packages of the locally built addons, if requested. */
  readonly addons: readonly { readonly name: string; readonly tarball: string; readonly packed: Packed }[];
  /** An empty project with only the tarball installed. */
  readonly folder: string;
  /** Writes a file into the project and returns its path. */
  write(path: string, text: string): string;
  remove(): void;
}

/**
 * Packs the build and installs the package alone: no network, no install scripts. Its optional
 * dependencies are absent, as on a system without an addon.
 */
export function install({ addons: wanted = false } = {}): Installed {
  const folder = temporaryFolder("packed");
  const args = ["npm/scripts/packages.mjs", folder, "--as-built", "--json", ...(wanted ? [] : ["--no-addons"])];
  const all = JSON.parse(output(process.execPath, args, { cwd: root })) as Packed[];
  const pathOf = ({ filename }: Packed) => join(folder, filename);
  const packed = all.find(({ name }) => name === "tidegate") as Packed;
  const beside = (of: string) => {
    const one = all.find(({ name }) => name === of) as Packed;
    return { tarball: pathOf(one), packed: one };
  };
  const tools = {
    replay: beside("tidegate-replay"),
    serve: beside("tidegate-serve"),
    console: beside("tidegate-console"),
  };
  const tarball = pathOf(packed);
  const addons = all
    .filter(({ name }) => name.startsWith("@tidegate/"))
    .map((one) => ({ name: one.name, tarball: pathOf(one), packed: one }));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
    return join(folder, path);
  };
  write("package.json", JSON.stringify({ name: "a-user", version: "1.0.0", private: true }));
  output("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", tarball], { cwd: folder });
  return { tarball, packed, ...tools, addons, folder, write, remove: () => remove(folder) };
}

interface Manifest {
  readonly exports: Record<string, string | { types: string; default: string }>;
  readonly imports: Record<string, Record<string, string>>;
  readonly [field: string]: unknown;
}

/** Every entry with code: `tidegate`, `tidegate/redis`, … */
export function entries(manifest: Manifest): string[] {
  return Object.keys(manifest.exports)
    .filter((path) => !/\.(json|sql|lua)$/.test(path))
    .map((path) => `tidegate${path.slice(1)}`);
}

export type { Manifest };
