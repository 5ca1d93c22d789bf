// Not by its name: webpack replaces an imported `createRequire`, and a call of it then fails.
import modules from "node:module";
import type { Numbers } from "./answer.ts";
import { VERSION } from "./generated/bounds.ts";

/** What a store holds and has dropped. */
export interface AddonStats {
  keys: number;
  maxKeys: number;
  evicted: number;
  expired: number;
  bytes: number;
  syncError?: string;
}

/** The addon's exports: see crates/node. Stores and limits are numbers on this thread; a status is a word of `tidegate_wire`. */
export interface Addon {
  /** The version of the crates that it was built from. */
  version(): string;
  /**
   * Opens the process's table. Returns the store's own numbers: eight doubles, which the calls below read and write. The first is
   * the store itself.
   */
  openShared(maxKeys: number): Numbers;
  /** Opens a folder, and returns the same. Throws if it cannot. */
  openFile(path: string, maxKeys: number, sync: number): Numbers;
  close(store: number): void;
  /** The error text of the store's last failed call. */
  fault(store: number): string;
  limitNew(store: number, name: string, kind: number): number;
  limitDrop(limit: number): void;
  /** How many limits this thread keeps. */
  limits(): number;
  decide(limit: number, flags: number, key: string | undefined): number;
  /** Throws if a folder cannot be read. */
  stats(store: number): AddonStats;
  all(
    store: number,
    limits: Uint32Array,
    units: Uint16Array,
    ends: Uint32Array,
    answers: Float64Array,
    now: number,
    takes: boolean,
  ): [status: number, retryAt: number];
  many(limit: number, units: Uint16Array, ends: Uint32Array, answers: Float64Array, now: number, count: number): number;
}

/** How to find an addon; a test passes its own. */
export interface AddonSource {
  platform: string;
  arch: string;
  musl: boolean;
  require(id: string): unknown;
}

/**
 * The addon that a copy of the package has loaded in this thread. All copies of one version use it, from wherever it was
 * loaded: two addons would each have a table, and lock the same folders twice.
 */
const LOADED = Symbol.for(`tidegate addon ${VERSION}`);

/** The file of the program; of one that `bun build --compile` made, which has no such file, the executable. */
const programFile = (): string | undefined => {
  const { argv, execPath } = process;
  return /\$bunfs|~BUN/.test(argv[1] ?? "") ? execPath : argv[1];
};

/**
 * Loads a package from beside this file. A bundler may have moved the file, or left it without an address. A CommonJS bundle
 * has `__filename` instead, a name that is an error in an ES module. There webpack and Rspack write the address of the file that
 * they read: the program's file is beside its packages. The folder that a program runs in is not searched: what somebody left
 * there would run as native code.
 */
function load(id: string): unknown {
  let first: unknown;
  let none: unknown;
  const places = [() => import.meta.url, () => __filename, programFile];
  for (const place of places) {
    let require: NodeJS.Require;
    try {
      require = modules.createRequire(place() as string);
    } catch (error) {
      none = error;
      continue;
    }
    try {
      return require(id);
    } catch (error) {
      first ??= error;
      if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") break;
    }
  }
  // Without any place: a bundle for pages has no `createRequire`.
  throw first ?? none;
}

/** Once in a process: the report takes some ms. */
let hasMusl: boolean | undefined;

/** This process's. */
export function here(): AddonSource {
  const { platform, arch } = process;
  const loaded = globalThis as { [LOADED]?: Partial<Addon> | undefined };
  const require = (id: string): unknown => {
    if (loaded[LOADED] !== undefined) return loaded[LOADED];
    const addon = load(id) as Partial<Addon> | undefined;
    if (addon?.version?.() === VERSION) loaded[LOADED] = addon;
    return addon;
  };
  if (platform === "linux") hasMusl ??= isMusl();
  return { platform, arch, musl: hasMusl === true, require };
}

/** Whether this process's C library is musl: only glibc reports its version. Without a report, glibc is assumed. */
function isMusl(): boolean {
  const report = process.report as (NodeJS.ProcessReport & { excludeNetwork?: boolean }) | undefined;
  if (report === undefined) return false;
  // The report's network part looks up the names of connected hosts, and waits for them.
  const { excludeNetwork } = report;
  try {
    report.excludeNetwork = true;
    const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } };
    return header?.glibcVersionRuntime === undefined;
  } catch {
    // Deno requires --allow-sys for a report.
    return false;
  } finally {
    report.excludeNetwork = excludeNetwork ?? false;
  }
}

/** The package with the addon for a platform, named as napi names them. */
export function packageOf({ platform, arch, musl }: AddonSource): string {
  const abi = platform === "linux" ? (musl ? "-musl" : "-gnu") : platform === "win32" ? "-msvc" : "";
  return `@tidegate/${platform}-${arch}${abi}`;
}

/** Why there is no addon. */
interface Absent {
  /** The messages of the error and of its causes. */
  readonly why: string;
  /** What makes the addon load. */
  readonly remedy: string;
  readonly cause: Error;
}

function remedyOf(source: AddonSource, { name, code }: Partial<NodeJS.ErrnoException>): string {
  if (code === "ERR_DLOPEN_DISABLED") return "start Node.js with --allow-addons, and without --no-addons";
  if (name === "NotCapable") return "start Deno with --allow-ffi";
  const machine = `${source.platform}-${source.arch}`;
  if (!/^(darwin|linux|win32)-(arm64|x64)$/.test(machine)) return `use a supported platform: ${machine} is not one`;
  return `install the package ${packageOf(source)}`;
}

export function loadAddon(source: AddonSource): { readonly addon: Addon } | Absent {
  const name = packageOf(source);
  try {
    const addon = source.require(name) as Partial<Addon>;
    if (typeof addon?.decide !== "function" || typeof addon.openShared !== "function") {
      throw new Error(`${name} was loaded, but is not tidegate's addon`);
    }
    // Numbers are passed by position: another version could read one as another.
    const version = addon.version?.() ?? "older";
    if (version === VERSION) return { addon: addon as Addon };
    throw new Error(`${name} is ${version}, and tidegate is ${VERSION}: install both at one version`);
  } catch (error) {
    const causes: Error[] = [];
    // Not by `instanceof`: in Jest's sandbox the error is of another realm.
    for (let cause = error as Error; typeof cause?.message === "string" && !causes.includes(cause); ) {
      causes.push(cause);
      cause = cause.cause as Error;
    }
    const [cause = new Error(String(error))] = causes;
    const why = causes.map(({ message }) => message).join("; caused by: ") || cause.message;
    return { why, remedy: remedyOf(source, cause), cause };
  }
}
