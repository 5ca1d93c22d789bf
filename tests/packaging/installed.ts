import { execFileSync, type ExecFileSyncOptions } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { digestOf } from "../../npm/scripts/files.mjs";
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
  /** Installs more packages. */
  add(...tarballs: readonly string[]): void;
  /** The package.json of an installed package; default `tidegate`. */
  manifest(name?: string): Manifest;
  /** Writes a file into the project and returns its path. */
  write(path: string, text: string): string;
  remove(): void;
}

/** The digest of what is packed, with the addons if they are, and of what packs it. */
function buildDigest(addons: boolean): string {
  const packages = readdirSync(join(root, "npm")).filter((name) => existsSync(join(root, "npm", name, "package.json")));
  const parts = packages.flatMap((name) =>
    readdirSync(join(root, "npm", name))
      .filter((part) => /^(package\.json|README\.md|dist)$/.test(part) || (addons && part.endsWith(".node")))
      .map((part) => `npm/${name}/${part}`),
  );
  const packed = ["LICENSE", "Cargo.lock", "package-lock.json", "npm/scripts", ...parts];
  const paths = packed.map((path) => join(root, path));
  return digestOf(root, paths).slice(0, 16);
}

const REPORT = "packed.json";

/** Installs tarballs into a project, without a network and without scripts. */
export function npmInstall(folder: string, tarballs: readonly string[]): void {
  output("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", ...tarballs], { cwd: folder });
}

/** A project as npm leaves it after it has installed the tarball. Made once for each build: npm takes seconds for it. */
function installedByNpm(wanted: boolean): string {
  const cache = join(root, "node_modules", ".cache", "tidegate");
  const prefix = wanted ? "user-addons-" : "user-";
  const digest = buildDigest(wanted);
  const place = join(cache, prefix + digest);
  if (existsSync(place)) return place;
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "packing-"));
  const args = ["npm/scripts/packages.mjs", folder, "--as-built", "--json", ...(wanted ? [] : ["--no-addons"])];
  const report = output(process.execPath, args, { cwd: root });
  writeFileSync(join(folder, REPORT), report);
  const { filename } = (JSON.parse(report) as Packed[]).find(({ name }) => name === "tidegate") as Packed;
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "a-user", version: "1.0.0", private: true }));
  npmInstall(folder, [join(folder, filename)]);
  try {
    renameSync(folder, place);
  } catch {
    // Another test was faster.
    remove(folder);
  }
  for (const name of readdirSync(cache)) {
    if (name.slice(0, -digest.length) === prefix && !name.endsWith(digest)) remove(join(cache, name));
  }
  return place;
}

/**
 * A project of a user who installed the package alone: no network, no install scripts. Its optional
 * dependencies are absent, as on a system without an addon.
 */
export function install({ addons: wanted = false } = {}): Installed {
  const folder = temporaryFolder("packed");
  // Links of `.bin` stay relative.
  cpSync(installedByNpm(wanted), folder, { recursive: true, verbatimSymlinks: true });
  const all = JSON.parse(readFileSync(join(folder, REPORT), "utf8")) as Packed[];
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
  const add = (...tarballs: readonly string[]) => npmInstall(folder, tarballs);
  const manifest = (name = "tidegate") =>
    JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8")) as Manifest;
  return { tarball, packed, ...tools, addons, folder, add, manifest, write, remove: () => remove(folder) };
}

/** A project that is removed after the tests of the file. */
export function forTests(user: Installed): Installed {
  afterAll(() => user.remove());
  return user;
}

/** What conditions of package.json lead to. */
type Conditions = string | { readonly [condition: string]: Conditions };

interface Manifest {
  readonly exports: Record<string, string | { types: string; default: string }>;
  readonly imports: Record<string, { readonly [condition: string]: Conditions }>;
  readonly [field: string]: unknown;
}

/** Every entry with code: `tidegate`, `tidegate/redis`, … */
export function entries(manifest: Manifest): string[] {
  return Object.keys(manifest.exports)
    .filter((path) => !/\.(json|sql|lua)$/.test(path))
    .map((path) => `tidegate${path.slice(1)}`);
}

export type { Conditions, Manifest };
