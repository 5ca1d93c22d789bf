import { createRequire } from "node:module";
import { VERSION } from "./generated/bounds.ts";

/** What the addon exports: see crates/node. */
export interface Addon {
  /** That of the crates it was built from. */
  version(): string;
  open(numbers: Float64Array, maxKeys: number): number;
  limitNew(name: string, kind: number, given: number): number;
  decide(limit: number, flags: number, key: string | undefined): number;
  value(limit: number, key: Uint16Array | undefined, now: number): number;
  reset(limit: number, key: Uint16Array | undefined): number;
  stats(): number[];
  all(
    limits: Uint32Array,
    units: Uint16Array,
    ends: Uint32Array,
    answers: Float64Array,
    now: number,
    takes: boolean,
  ): [status: number, retryAt: number];
  many(
    limit: number,
    units: Uint16Array,
    ends: Uint32Array,
    answers: Float64Array,
    now: number,
    count: number,
    flags: number,
  ): number;
  /** Options and result are the JSON of crates/replay; progress is bytes, all bytes (NaN: unknown), requests, and 1 behind the log's end. */
  replay(options: string, progress: (step: [number, number, number, number]) => void): Promise<string>;
  /** Opens a folder and returns its number on this thread, which the calls below take. Throws where it cannot. */
  fileOpen(numbers: Float64Array, path: string, maxKeys: number, sync: number): number;
  fileClose(store: number): void;
  /** Why the last call that failed did. */
  fileFault(): string;
  fileLimitNew(store: number, name: string, kind: number, given: number): number;
  fileDecide(limit: number, flags: number, key: string | undefined, store: number): number;
  fileValue(store: number, limit: number, key: Uint16Array | undefined, now: number): number;
  fileReset(store: number, limit: number, key: Uint16Array | undefined): number;
  fileStats(store: number): {
    keys: number;
    maxKeys: number;
    evicted: number;
    expired: number;
    bytes: number;
    syncError?: string;
  };
  fileAll(
    store: number,
    limits: Uint32Array,
    units: Uint16Array,
    ends: Uint32Array,
    answers: Float64Array,
    now: number,
    takes: boolean,
  ): [status: number, retryAt: number];
  fileMany(
    store: number,
    limit: number,
    units: Uint16Array,
    ends: Uint32Array,
    answers: Float64Array,
    now: number,
    count: number,
    flags: number,
  ): number;
}

/** This thread's eight numbers, which the addon reads and writes: one for all stores of the thread. */
export const lent: Float64Array<ArrayBuffer> = new Float64Array(new ArrayBuffer(64));

/** How an addon is found; a test passes its own. */
export interface AddonSource {
  platform: string;
  arch: string;
  musl: boolean;
  require(id: string): unknown;
}

/** This process's. */
export function here(): AddonSource {
  const { platform, arch } = process;
  return { platform, arch, musl: platform === "linux" && isMusl(), require: createRequire(import.meta.url) };
}

/** Whether this process's C library is musl: only glibc tells its version. A host without reports is taken for glibc's. */
function isMusl(): boolean {
  const report = process.report as (NodeJS.ProcessReport & { excludeNetwork?: boolean }) | undefined;
  if (report === undefined) return false;
  // Else it asks the name server who the process is connected to, and waits.
  const { excludeNetwork } = report;
  report.excludeNetwork = true;
  const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } };
  report.excludeNetwork = excludeNetwork ?? false;
  return header?.glibcVersionRuntime === undefined;
}

/** The package with the addon for a platform, named as napi names them. */
export function packageOf({ platform, arch, musl }: AddonSource): string {
  const abi = platform === "linux" ? (musl ? "-musl" : "-gnu") : platform === "win32" ? "-msvc" : "";
  return `@tidegate/${platform}-${arch}${abi}`;
}

/** The addon, or every reason why there is none. */
export function loadAddon(source: AddonSource): { addon: Addon } | { causes: Error[] } {
  const name = packageOf(source);
  try {
    const addon = source.require(name) as Partial<Addon>;
    if (typeof addon?.decide !== "function" || typeof addon.open !== "function") {
      return { causes: [new Error(`${name} was loaded, but is not tidegate's addon`)] };
    }
    // The two talk by position: another version could take one number for another, and decide by it.
    const version = addon.version?.() ?? "older";
    if (version === VERSION) return { addon: addon as Addon };
    return { causes: [new Error(`${name} is ${version}, and tidegate is ${VERSION}: install both at one version`)] };
  } catch (error) {
    const causes: Error[] = [];
    for (let cause: unknown = error; cause instanceof Error && causes.length < 8; cause = cause.cause) {
      causes.push(cause);
    }
    return { causes: causes.length > 0 ? causes : [new Error(String(error))] };
  }
}
